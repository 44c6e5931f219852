/** The licences of what is bundled: their texts are to go with the code, and a bundle drops their files. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';

/** The folder of the package a module belongs to; null for our own. */
export function packageFolder(moduleId: string): string | null {
  const at = moduleId.lastIndexOf('/node_modules/');
  if (at < 0) return null;
  const parts = moduleId.slice(at + '/node_modules/'.length).split('/');
  const name = parts[0]?.startsWith('@') === true ? parts.slice(0, 2).join('/') : (parts[0] ?? '');
  return `${moduleId.slice(0, at)}/node_modules/${name}`;
}

/** Adds the folder of each package that a module of the bundle comes from. */
export function collectPackages(into: Set<string>): Plugin {
  return {
    name: 'collect-packages',
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk') continue;
        for (const id of Object.keys(file.modules)) {
          const folder = packageFolder(id);
          if (folder !== null) into.add(folder);
        }
      }
    },
  };
}

/** One text: each package's name, version, licence, and the text it came with. */
export function licenceText(folders: Iterable<string>): string {
  const parts = [...new Set(folders)].sort().map((folder) => {
    const facts: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = licenceFile(folder);
    const head = `${field(facts, 'name')} ${field(facts, 'version')} (${field(facts, 'license')})`;
    return file === null ? head : `${head}\n\n${readFileSync(file, 'utf8').trim()}`;
  });
  return `${parts.join(`\n\n${'-'.repeat(80)}\n\n`)}\n`;
}

/** Some packages of a repository keep one licence above them. */
function licenceFile(folder: string): string | null {
  for (const place of [folder, dirname(folder)]) {
    if (!existsSync(place)) continue;
    const name = readdirSync(place).find((entry) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(entry));
    if (name !== undefined) return join(place, name);
  }
  return null;
}

function field(value: unknown, name: string): string {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, name) : null;
  return typeof found === 'string' ? found : 'unknown';
}
