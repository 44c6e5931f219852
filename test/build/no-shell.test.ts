import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

/** Our sources: what runs on a person's machine, and what sets it up. */
const FILES: readonly string[] = ['electron', 'shared', 'renderer', 'build'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(ts|tsx|mjs)$/.test(name))
    .map((name) => join(folder, name)),
);

/** What would hand a text to a shell. */
function shellUses(source: string): readonly string[] {
  const found: string[] = [];
  for (const line of source.split('\n')) {
    const code = line.replace(/^\s*(\*|\/\/).*/, '');
    if (/\bfrom 'node:child_process'/.test(code) && /\bexec(Sync)?\b/.test(code)) found.push(line);
    if (/\bexecSync\s*\(/.test(code)) found.push(line);
    if (/\bshell:\s*(true|['"`])/.test(code)) found.push(line);
    // A fixed script may be given to a shell with arguments of its own; a text that is put together may not.
    if (
      /\b(ba|da|z)?sh['"`],/.test(code) &&
      /['"`]-c['"`],/.test(code) &&
      !/['"`]-c['"`], [A-Z_]+,/.test(code)
    )
      found.push(line);
  }
  return found;
}

describe('no text is handed to a shell', () => {
  it('anywhere in our sources', () => {
    expect(FILES.length).toBeGreaterThan(300);
    const uses = FILES.flatMap((file) =>
      shellUses(readFileSync(join(root, file), 'utf8')).map((line) => `${file}: ${line.trim()}`),
    );
    expect(uses).toEqual([]);
  });

  it.each([
    `import { exec } from 'node:child_process';`,
    `import { execSync, spawn } from 'node:child_process';`,
    'spawn(command, { shell: true })',
    "spawn(command, { shell: '/bin/bash' })",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source that is looked for.
    "spawn('sh', ['-c', `kill ${pid}`])",
    "run('/bin/sh', '-c', command + name, 'x')",
  ])('%s would be seen', (line) => {
    expect(shellUses(line)).toHaveLength(1);
  });

  it.each([
    `import { execFile, spawn } from 'node:child_process';`,
    'const found = /a/.exec(text);',
    "['/bin/sh', '-c', CHECK_PARENT, 'sh', pid]",
    '  shell: { layers: [] },',
  ])('%s is none', (line) => {
    expect(shellUses(line)).toEqual([]);
  });
});
