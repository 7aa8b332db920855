"""Changes over nights: which nodes became worse."""
