/** `node build/check-layers.ts`: proves the import rule over every source file; see layers.ts. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { importsOf } from './imports.ts';
import { checkImports, type Violation } from './layers.ts';

const SOURCES = '{shared,renderer,electron,build,test}/**/*.{ts,tsx,mts,mjs}';

/** Every violation under a folder that is laid out as the repository is. */
export function checkLayers(root: string): {
  readonly files: number;
  readonly violations: readonly Violation[];
} {
  const files = globSync(SOURCES, { cwd: root })
    .map((file) => file.replaceAll('\\', '/'))
    .filter((file) => !file.includes('/fixtures/'))
    .sort();
  const violations = files.flatMap((file): readonly Violation[] => {
    const found = importsOf(file, readFileSync(join(root, file), 'utf8'));
    return found.ok
      ? checkImports(file, found.imports)
      : [{ file, line: 1, message: `does not parse: ${found.message}` }];
  });
  return { files: files.length, violations };
}

if (import.meta.main) {
  const { files, violations } = checkLayers(fileURLToPath(new URL('..', import.meta.url)));
  for (const { file, line, message } of violations) process.stderr.write(`${file}:${line}: ${message}\n`);
  process.stdout.write(
    violations.length === 0
      ? `The import rule holds in ${files} files.\n`
      : `The import rule is broken ${violations.length} times.\n`,
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
}
