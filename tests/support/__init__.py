"""Code that tests of several folders share: servers, proxies, transcripts, foreign readers."""
