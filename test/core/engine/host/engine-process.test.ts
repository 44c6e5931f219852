import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  type NodeEngineOptions,
  nodeEngineProcess,
  type ProcessEnd,
} from '../../../../electron/core/engine/engine-process.ts';

let folder = '';
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'landlord-child-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

/** How a child of this code ends. */
async function endOf(code: string, options: NodeEngineOptions = {}): Promise<ProcessEnd> {
  const childPath = join(folder, 'child.mjs');
  await writeFile(childPath, code);
  return await new Promise((onExit) => {
    nodeEngineProcess({ ...options, childPath })({ onMessage: () => {}, onExit });
  });
}

const SAY = "import { writeSync } from 'node:fs';";

it('has what an engine said just before it aborted', async () => {
  const end = await endOf(`${SAY} writeSync(2, 'GGML_ASSERT(a == b) failed\\n'); process.abort();`);
  expect(end).toMatchObject({ code: null, signal: 'SIGABRT' });
  expect(end.lastWords).toContain('GGML_ASSERT(a == b) failed');
});

it('takes nothing for its last words that it said long before', async () => {
  // Whatever it was, it is older than the limit.
  const end = await endOf(
    `${SAY} writeSync(2, 'failed to load model\\n'); process.kill(process.pid, 'SIGKILL');`,
    {
      lastWordsMs: 0,
    },
  );
  expect(end).toEqual({ code: null, signal: 'SIGKILL', lastWords: '' });
});

it('tells an end also where something it started keeps its stderr open', async () => {
  const end = await endOf(
    "import { spawn } from 'node:child_process'; spawn('sleep', ['3'], { stdio: 'inherit', detached: true }).unref(); setTimeout(() => process.exit(3), 100);",
  );
  expect(end.code).toBe(3);
});

it('says why a program that is not there could not be started', async () => {
  const end = await endOf('', { nodePath: join(folder, 'no-node') });
  expect(end).toMatchObject({ code: null, signal: null });
  expect(end.lastWords).toContain('ENOENT');
});
