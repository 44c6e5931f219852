import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { serve } from '../core/backends/servers/server.ts';
import { SUBJECTS } from '../core/backends/subjects.ts';
import { TINY_SHAPE } from '../support/gguf.ts';
import { landlord } from '../support/landlord.ts';
import { freePort } from '../support/llama-server.ts';
import { startRouter } from '../support/router.ts';

interface Check {
  readonly name: string;
  readonly outcome: string;
  readonly detail: readonly string[];
}

/** The whole command, on a machine with one of each server: a real router, the others played as their kinds answer. */
it('doctor says of any mix of servers what each is, and what is in the way', async () => {
  const root = mkdtempSync(join(tmpdir(), 'landlord-doctor-'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(root, { recursive: true, force: true }));
  const router = stack.use(await startRouter({ models: { tiny: { shape: TINY_SHAPE } } }));
  const backends = [`  - { name: router, kind: llama.cpp, url: "${router.url}" }`];
  const asked: string[] = [];
  for (const { kind, script, notFound, isPassive } of SUBJECTS) {
    if (kind === 'llama.cpp' || backends.some((line) => line.includes(`kind: ${kind},`))) continue;
    const server = stack.use(await serve(script, notFound));
    server.put({ name: 'qwen', state: 'loaded' });
    backends.push(`  - { name: ${kind}, kind: ${kind}, url: "${server.url}" }`);
    stack.defer(() => {
      asked.push(...server.asked.filter((one) => !isPassive(one)).map(({ path }) => path));
    });
  }
  const foreign = stack.use(await serve(() => undefined, { status: 404, body: 'no' }));
  backends.push(`  - { name: taken, kind: ollama, url: "${foreign.url}" }`);
  backends.push(`  - { name: away, kind: ollama, url: "http://127.0.0.1:${await freePort()}" }`);
  const mistaken = SUBJECTS.find((subject) => subject.kind === 'llama-swap');
  if (mistaken === undefined) throw new Error('no llama-swap');
  const other = stack.use(await serve(mistaken.script, mistaken.notFound));
  backends.push(`  - { name: mistaken, kind: lmstudio, url: "${other.url}" }`);
  const config = join(root, 'config.yaml');
  writeFileSync(config, `backends:\n${backends.join('\n')}\n`);
  const env = { VRAM_LANDLORD_GATE_DIR: join(root, 'gates'), XDG_RUNTIME_DIR: root };
  const ran = await landlord(['doctor', '--json', '--config', config], env);
  const { sections }: { sections: readonly { title: string; checks: readonly Check[] }[] } = JSON.parse(
    ran.out,
  );
  const said = (title: string): Readonly<Record<string, string>> =>
    Object.fromEntries(
      (sections.find((section) => section.title === title)?.checks ?? []).map((check) => [
        check.name,
        `${check.outcome}: ${check.detail.join(' ')}`,
      ]),
    );
  const servers = said('Servers');
  expect(servers.config).toBeUndefined();
  expect(servers.router).toMatch(/^ok: a llama\.cpp router b\d+\S* answers at /);
  expect(servers.ollama).toMatch(/^ok: ollama 0\.34\.2 answers at .* not the server itself/);
  expect(servers.lmstudio).toMatch(/^ok: lmstudio answers/);
  expect(servers.lemonade).toMatch(/^ok: lemonade 9\.3\.1 answers/);
  expect(servers['llama-swap']).toMatch(/^ok: llama-swap 217 answers/);
  // This very process plays it.
  expect(servers.taken).toMatch(
    new RegExp(`^failed: .* none of the servers we know.* it is process ${process.pid} \\(node\\)`),
  );
  expect(servers.away).toMatch(/^failed: nothing answers at .* start the server/);
  expect(servers.mistaken).toMatch(
    /^failed: .* is llama-swap 217, and the config calls it lmstudio: write kind: llama-swap/,
  );
  expect(said('Machine')).toMatchObject({
    'kernel log': expect.stringMatching(/^(?:ok: trouble|skipped: this user may not read it)/),
    tray: expect.any(String),
    service: expect.any(String),
  });
  expect(ran.code).toBe(1);
  await stack.disposeAsync();
  // Every question was one that loads, wakes and prolongs nothing; what proves a kind is asked of all.
  expect(
    asked.filter(
      (path) => !/^\/(?:props|running|api\/(?:version|ps)|(?:api\/)?v1\/(?:health|models))$/.test(path),
    ),
  ).toEqual([]);
});
