"""The compiler, from a program to a plan, and the devices that run one."""
