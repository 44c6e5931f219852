import { createServer } from 'node:http';
import type { ObservedModel } from '../../../electron/core/backends/backend.ts';
import { until } from '../../support/router.ts';
import { listen } from '../../support/upstream.ts';
import { family } from './family.ts';
import { BLOB } from './servers/scripts.ts';
import type { StagedModel } from './servers/server.ts';
import { type Subject, watch } from './subjects.ts';

/** What one kind of server lets be seen and done, as it came out of a run. */
export interface Findings {
  readonly title: string;
  readonly states: readonly string[];
  readonly busy: 'told' | 'by its process' | 'not told';
  readonly process: boolean;
  readonly context: boolean;
  readonly memory: 'claimed' | 'file size' | 'not told';
  readonly leaves: boolean;
  readonly load: boolean;
  readonly unload: boolean;
  /** What its model has read can be saved. */
  readonly slots: boolean;
  readonly notes: readonly string[];
}

const SIGNAL = new AbortController().signal;
const LIMIT_MS = 20_000;

/** Runs the adapter against its server, with a child process as that server would start it. */
export async function findingsOf(subject: Subject): Promise<Findings> {
  const slots = JSON.stringify([{ id: 0, is_processing: false, n_prompt_tokens: 0 }]);
  const child = createServer((_, response) => response.end(slots));
  const port = await listen(child);
  const staged: StagedModel = {
    name: 'qwen',
    state: 'loaded',
    contextTokens: 12_288,
    port,
    bytes: 4_000_000_000,
  };
  const command = ['/opt/llama-server', '--model', `/blobs/${BLOB}`, '--port', `${port}`, '--alias', 'qwen'];
  await using it = await watch(subject, {
    before: (server) => server.put(staged),
    inspector: (server) =>
      family(subject, Number(new URL(server.url).port), { command, listeningPorts: [port] }),
  });
  using _child = { [Symbol.dispose]: () => child.close() };
  const model = (): ObservedModel | undefined =>
    it.backend.snapshot().models.find((one) => one.name === 'qwen');
  await until(() => model()?.status === 'loaded', LIMIT_MS, `${subject.title} to have its model`);
  const isProven = await until(() => model()?.process !== null, 3_000, 'a process').then(
    () => true,
    () => false,
  );
  const isTold = await toldBusy();
  const isSeen =
    isTold || (isProven && (await until(() => model()?.busy === false, LIMIT_MS, 'idle').then(() => true)));
  const now = model();
  const { notes } = it.backend.snapshot();
  const kept = await it.backend.slots?.list('qwen', SIGNAL);
  const states = new Set<string>();
  for (const state of ['unloaded', 'loading', 'loaded', 'sleeping', 'stopping'] as const) {
    const status = subject.states[state];
    if (status === undefined) continue;
    staged.state = state;
    await until(() => model()?.status === status, LIMIT_MS, `${subject.title} to tell ${state}`);
    states.add(status);
  }
  staged.state = 'loaded';
  await until(() => model()?.status === 'loaded', LIMIT_MS, 'it to be loaded again');
  const unload = (await it.backend.unload('qwen', SIGNAL)).ok;
  if (unload) await until(() => model()?.status === 'unloaded', LIMIT_MS, 'it to be unloaded');
  staged.state = 'unloaded';
  await until(() => model()?.status === 'unloaded', LIMIT_MS, 'it to be unloaded');
  const load = (await it.backend.load('qwen', SIGNAL)).ok;
  return {
    title: subject.title,
    states: [...states],
    busy: isTold ? 'told' : isSeen ? 'by its process' : 'not told',
    process: isProven,
    context: now?.contextTokens === 12_288,
    memory: now?.reportedBytes != null ? 'claimed' : now?.weightsBytes != null ? 'file size' : 'not told',
    leaves: now?.expiresAtMs != null,
    load,
    unload,
    slots: kept?.ok === true,
    notes,
  };

  async function toldBusy(): Promise<boolean> {
    if (!subject.tellsBusy) return false;
    staged.busy = true;
    if (subject.tellBusy !== undefined) await until(() => it.server.streams() > 0, LIMIT_MS, 'the stream');
    subject.tellBusy?.(it.server, staged);
    await until(() => model()?.busy === true, LIMIT_MS, 'busy');
    staged.busy = false;
    subject.tellBusy?.(it.server, staged);
    await until(() => model()?.busy === false, LIMIT_MS, 'idle');
    return true;
  }
}

const yes = (holds: boolean): string => (holds ? 'yes' : 'no');

/** The table of the docs. */
export function tableOf(findings: readonly Findings[]): string {
  const rows: readonly (readonly [string, (one: Findings) => string])[] = [
    ['States', (one) => one.states.join(', ')],
    ['Busy', (one) => one.busy],
    ['Process proven', (one) => yes(one.process)],
    ['Context', (one) => yes(one.context)],
    ['Memory, beyond what the driver shows', (one) => one.memory],
    ['When it leaves by itself', (one) => yes(one.leaves)],
    ['Load on request', (one) => yes(one.load)],
    ['Unload on request', (one) => yes(one.unload)],
    ['Conversations outlive an unload', (one) => yes(one.slots)],
  ];
  const head = ['', ...findings.map((one) => one.title)];
  const lines = rows.map(([title, cell]) => [title, ...findings.map(cell)]);
  const notes = findings.flatMap((one) => one.notes.map((note) => `- **${one.title}.** ${note}`));
  return [
    row(head),
    row(head.map(() => '---')),
    ...lines.map(row),
    '',
    'What each says of itself in a run, beyond the table:',
    '',
    ...notes,
  ].join('\n');
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
