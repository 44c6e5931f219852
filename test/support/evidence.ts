import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Saved outputs that may lie beside the repository; a clone without them tests with its own fixtures alone. */
const ROOT = fileURLToPath(new URL('../../../shared/evidence/', import.meta.url));

/** File names of one folder, sorted; empty where it is not there. */
export function evidenceFiles(folder: string): readonly string[] {
  return existsSync(`${ROOT}${folder}`) ? readdirSync(`${ROOT}${folder}`).sort() : [];
}

export function readEvidence(folder: string, file: string): string {
  return readFileSync(`${ROOT}${folder}/${file}`, 'utf8');
}

/** Text of a fixture under test/fixtures. */
export function readFixture(path: string): string {
  return readFileSync(fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url)), 'utf8');
}
