/** Makes `npx landlord …` work in the project: npm links the commands of packages, not of the project itself. */
import { existsSync, lstatSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

const TARGET = '../../build/landlord';

/** @param {string} root */
export function linkCommand(root) {
  const link = join(root, 'node_modules/.bin/landlord');
  if (!existsSync(join(root, 'build/landlord'))) return;
  const present = lstatSync(link, { throwIfNoEntry: false });
  if (present?.isSymbolicLink() && readlinkSync(link) === TARGET) return;
  if (present) rmSync(link, { force: true });
  symlinkSync(TARGET, link);
}
