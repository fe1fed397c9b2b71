"""Break it: simulated and real crashes, lost storage, failover, and judges of histories."""
