import { join } from 'node:path';

/** A backend's name is letters, digits, points, _ and -, so it is a file's name as it is. */
export function logFileOf(logFolder: string, backend: string): string {
  return join(logFolder, `${backend}.log`);
}
