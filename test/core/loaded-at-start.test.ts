import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';

/** What a process has loaded once it has imported one of our modules: packages by name, and parts of Node. */
function loadedBy(module: string): {
  readonly packages: readonly string[];
  readonly node: readonly string[];
} {
  const url = pathToFileURL(resolve(import.meta.dirname, '../..', module)).href;
  const program = `
    const loaded = new Set();
    process.getBuiltinModule('node:module').registerHooks({
      load(url, context, next) {
        const name = /node_modules\\/((?:@[^/]+\\/)?[^/]+)\\/(?!.*node_modules)/.exec(url)?.[1];
        if (name !== undefined) loaded.add(name);
        return next(url, context);
      },
    });
    await import(${JSON.stringify(url)});
    process.stdout.write(JSON.stringify({ packages: [...loaded], node: process.moduleLoadList }));
    process.exit(0);`;
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

const NODES_UNDICI = /internal\/deps\/undici/;

// Each costs an idle runtime megabytes, and every start milliseconds; who needs one loads it then.
describe('at its start', () => {
  it('a runtime loads fastify and no other package', () => {
    const { packages, node } = loadedBy('electron/core/runtime.ts');
    expect(packages).toContain('fastify');
    for (const name of [
      'zod',
      'yaml',
      'undici',
      'koffi',
      'prom-client',
      'systeminformation',
      '@huggingface/gguf',
      'node-llama-cpp',
    ])
      expect(packages).not.toContain(name);
    expect(node.filter((part) => NODES_UNDICI.test(part))).toEqual([]);
  });

  it.each([
    'electron/cli/run-status.ts',
    'electron/cli/run-events.ts',
    'electron/cli/run-action.ts',
    'electron/core/devices/sampler-child.ts',
  ])('%s loads no package', (module) => {
    const { packages, node } = loadedBy(module);
    expect(packages).toEqual([]);
    expect(node.filter((part) => NODES_UNDICI.test(part))).toEqual([]);
  });
});
