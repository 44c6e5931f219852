/** `--import` this to have a Node that can't become another program, as on Windows. */
Object.defineProperty(process, 'execve', { value: undefined });
