"""The testbed: experiments on a live grid."""
