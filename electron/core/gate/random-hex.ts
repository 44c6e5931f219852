import { closeSync, openSync, readSync } from 'node:fs';

/**
 * Unguessable lower-case hex digits, two for each byte. Read from the kernel itself where it has a file
 * for that (random(4)): to load `node:crypto` takes 7 ms, which a `landlord turn` would feel (measured,
 * Node 24).
 */
export function randomHex(bytes: number): string {
  return fromKernel(bytes) ?? process.getBuiltinModule('node:crypto').randomBytes(bytes).toString('hex');
}

function fromKernel(bytes: number): string | null {
  if (process.platform === 'win32') return null;
  let fd: number;
  try {
    fd = openSync('/dev/urandom', 'r');
  } catch {
    return null;
  }
  try {
    const buffer = Buffer.alloc(bytes);
    return readSync(fd, buffer) === bytes ? buffer.toString('hex') : null;
  } catch {
    return null;
  } finally {
    closeSync(fd);
  }
}
