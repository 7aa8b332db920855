"""Power, temperature and throttling of nodes, read beside a load.

`seatrial.checks.loadsensors` runs on every node of a job as one more step, from before
the load to after it; `seatrial.checks.load_sensed` starts it and reads its rows.
"""
