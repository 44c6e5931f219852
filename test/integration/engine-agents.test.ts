import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { expect, it } from 'vitest';
import { hostFolder } from '../../electron/core/loop/agent-folders.ts';
import { processTree } from '../../electron/core/process/process-tree.ts';
import { type AgentsLandlord, decodeFields, startAgents } from '../support/agents-landlord.ts';
import { must, NEVER, TALKER_SHAPE } from '../support/engine.ts';
import { seeded } from '../support/engine-agents.ts';
import { gguf, MIDDLE_SHAPE } from '../support/gguf.ts';
import { until } from '../support/router.ts';
import { SocketClient } from '../support/socket-client.ts';

const NAMES = ['smol', 'qwen', 'llama'];
/** `LANDLORD_SWITCHES=1000` is the long form. */
const SWITCHES = Number(process.env.LANDLORD_SWITCHES ?? 60);
const NC = '/usr/bin/nc.openbsd';

/** Three models that say different things. */
async function paths(): Promise<readonly string[]> {
  return await Promise.all(NAMES.map((_, index) => gguf({ ...TALKER_SHAPE, seed: 11 + index })));
}

/** Registers all three. */
async function registered(landlord: AgentsLandlord, contextTokens = 512): Promise<void> {
  for (const [index, path] of (await paths()).entries()) {
    const [answer] = await landlord.ask(`REGISTER ${NAMES[index]}\t${path}\tcontext=${contextTokens}`);
    expect(answer).toMatch(/^OK agent_id=/);
  }
}

/** The room in which the three models and one context of theirs fit, and no second. */
async function roomForOne(): Promise<number> {
  await using wide = await startAgents({ totalBytes: 10_000_000_000 });
  await registered(wide);
  const weights = wide.runtime.state().devices[0]?.bookedBytes ?? 0;
  await wide.decode('smol', 1, 'x');
  const one = (wide.runtime.state().devices[0]?.bookedBytes ?? 0) - weights;
  expect(one).toBeGreaterThan(0);
  // The cap is nine tenths; what a context is predicted to take is a little more than it measures.
  return Math.ceil((weights + one * 1.6) / 0.9);
}

it('says bit for bit the same with its contexts swapped as with all of them live', async () => {
  const random = seeded(5);
  const script = Array.from({ length: 24 }, () => ({
    agent: NAMES[random(3)] ?? 'smol',
    count: 4 + random(20),
    prompt: 'abc def ghi jkl'.slice(random(8)),
  }));
  const said = async (landlord: AgentsLandlord, pause: (step: number) => Promise<void>) => {
    const texts: string[] = [];
    const swaps = { restored: 0, evicted: 0, reevaluated: 0 };
    for (const [step, { agent, count, prompt }] of script.entries()) {
      await pause(step);
      const { text, fields } = await landlord.decode(agent, count, prompt);
      texts.push(text);
      swaps.restored += Number(fields.kv_swap_restored === 'true');
      swaps.evicted += Number(fields.kv_swap_evicted !== 'none');
      swaps.reevaluated += Number(fields.kv_reevaluated_tokens ?? 0);
    }
    return { texts, swaps };
  };
  const totalBytes = await roomForOne();
  await using wide = await startAgents({ totalBytes: 10_000_000_000 });
  await registered(wide);
  const reference = await said(wide, async () => undefined);
  expect(reference.swaps).toEqual({ restored: 0, evicted: 0, reevaluated: 0 });

  await using narrow = await startAgents({ totalBytes });
  await registered(narrow);
  const swapped = await said(narrow, async (step) => {
    // In the middle everything is given back, and once the whole runtime starts anew.
    if (step === 8) expect((await narrow.runtime.command({ type: 'drain' })).ok).toBe(true);
    if (step === 16) await narrow.restart();
  });
  expect(swapped.texts).toEqual(reference.texts);
  expect(swapped.swaps.restored).toBeGreaterThan(8);
  expect(swapped.swaps.evicted).toBeGreaterThan(8);
  expect(swapped.swaps.reevaluated).toBe(0);
  const status = await narrow.ask('STATUS');
  expect(status[1]).toMatch(/agents=3 live_contexts=1$/);
});

it('goes on with the same conversation after its engine was killed in the middle of an answer', async () => {
  await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
  await registered(landlord, 4096);
  await landlord.decode('smol', 8, 'Once upon a time');
  const pid = await enginePid();
  // Held there, or on a busy machine it would have said all before this process looks.
  const undo = landlord.runtime.onState(({ agents }) => {
    if (agents.some((agent) => agent.agent === 'smol' && agent.state === 'generating'))
      process.kill(pid, 'SIGSTOP');
  });
  const asked = landlord.ask('DECODE smol 4000  and then');
  await until(() => landlord.agent('smol').state === 'generating', 20_000, 'the answer to begin');
  undo();
  process.kill(pid, 'SIGKILL');
  const [refused] = await asked;
  expect(refused).toMatch(/^ERR engine_ended: .*send it again/);
  // The state is of the loop's last step.
  await until(() => landlord.runtime.state().devices[0]?.bookedBytes === 0, 5_000, 'nothing to be booked');
  const log = readFileSync(`${dirname(landlord.socketPath)}/logs/embedded.log`, 'utf8');
  expect(log).toMatch(/Z the engine starts as process \d+\n/);
  expect(log).toMatch(/Z the engine ended, SIGKILL\n$/);
  const list = await landlord.ask('LIST');
  expect(list).toHaveLength(4);
  const { fields } = await landlord.decode('smol', 8, ' and then');
  // The first prompt with its begin token and the answer to it; this prompt has the tokenizer's space before it.
  expect(fields).toMatchObject({ prompt_tokens: '10', kv_reevaluated_tokens: '26' });
  expect(landlord.agent('smol').tokens).toBe(44);
  expect((await landlord.ask('STATUS'))[1]).toMatch(/agents=3 live_contexts=1$/);
});

it('lets a person through in the middle of a long batch prompt, which says the same as if nobody had come', async () => {
  const prompt = 'a long prompt of an indexer '.repeat(120);
  const said = async (visited: boolean): Promise<{ text: string; order: string[] }> => {
    await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
    const [indexer, person] = await paths();
    await landlord.ask(`REGISTER indexer\t${indexer}\tclass=batch`);
    await landlord.ask(`REGISTER person\t${person}`);
    await landlord.decode('person', 1, 'x');
    const order: string[] = [];
    using client = new SocketClient(landlord.socketPath);
    client.send(`DECODE indexer 12 ${prompt}\n`);
    await until(() => landlord.agent('indexer').state === 'generating', 10_000, 'the indexer to begin');
    const long = (async () => {
      const lines: string[] = [];
      while (lines.at(-1) !== 'END_RESPONSE') lines.push((await client.line()) ?? 'END_RESPONSE');
      order.push('indexer');
      return decodeFields(lines).text;
    })();
    if (visited) {
      await landlord.decode('person', 4, 'Hello');
      order.push('person');
    }
    return { text: await long, order };
  };
  const visited = await said(true);
  expect(visited.order).toEqual(['person', 'indexer']);
  expect(visited.text).toBe((await said(false)).text);
});

it('moves idle contexts out when others bring free memory under the floor, and says why', async () => {
  await using landlord = await startAgents({ totalBytes: 1_000_000_000, floor: '300MB' });
  await registered(landlord);
  const before = await landlord.decode('smol', 4, 'x');
  expect(before.text).not.toBe('');
  await landlord.uses(800_000_000);
  await until(() => landlord.agent('smol').kv === 'host', 20_000, 'its context to leave');
  const events = await landlord.runtime.events({ kinds: ['evicted'] });
  const reasons = events.ok ? events.value.map(({ reason }) => reason) : [];
  expect(reasons[0]).toMatch(/^The context of smol left the device .*free memory is under the floor/);
  // As long as that lasts, its next request is refused in numbers; then it goes on.
  const [denied] = await landlord.ask('DECODE smol 4 x');
  expect(denied).toMatch(/^ERR VRAM_LEDGER_DENY code=FLOOR .* free_bytes=\d+ floor_bytes=300000000$/);
  await landlord.uses(1_000_000);
  await until(
    () => (landlord.runtime.state().devices[0]?.freeBytes ?? 0) > 900_000_000,
    20_000,
    'the memory to be free',
  );
  const { fields } = await landlord.decode('smol', 4, 'x');
  expect(fields).toMatchObject({ kv_swap_restored: 'true' });
});

it('makes room for a job before any model has to leave: idle contexts, then weights, never those of one at work', async () => {
  const MB = 1_000_000;
  await using landlord = await startAgents({ totalBytes: 200 * MB });
  const path = await gguf(MIDDLE_SHAPE);
  await landlord.ask(`REGISTER smol\t${path}`);
  await landlord.decode('smol', 4, 'Hello');
  const booked = (): number => landlord.runtime.state().devices[0]?.bookedBytes ?? 0;
  // All may book 180 MB, of which the agent has its weights, its context and the engine's own.
  const job = (bytes: number) =>
    landlord.runtime.reserve({ bytes, device: null, name: 'render', pid: null }, NEVER);
  const some = 180 * MB - booked() + 5 * MB;
  const first = must(await job(some));
  expect(landlord.agent('smol')).toMatchObject({ kv: 'host' });
  expect(landlord.agent('smol').weightsBytes).toBeGreaterThan(30 * MB);
  first.release();

  // At work it keeps all it has.
  using client = new SocketClient(landlord.socketPath);
  client.send('DECODE smol 4000 and\n');
  await until(() => landlord.agent('smol').state === 'generating', 10_000, 'it to be at work');
  await until(() => landlord.agent('smol').kv === 'device', 10_000, 'its context');
  expect(await job(150 * MB)).toMatchObject({ ok: false, error: { code: 'vram_denied' } });
  expect(landlord.agent('smol').kv).toBe('device');
  client[Symbol.dispose]();
  await until(() => landlord.agent('smol').state === 'idle', 10_000, 'it to be idle');

  const whole = must(await job(175 * MB));
  expect(landlord.agent('smol')).toMatchObject({ kv: 'host', weightsBytes: 0 });
  expect(booked()).toBe(175 * MB);
  // While the job has it there is no room, and the conversation goes on afterwards.
  expect((await landlord.ask('DECODE smol 4 more'))[0]).toMatch(/^ERR VRAM_LEDGER_DENY/);
  whole.release();
  expect((await landlord.decode('smol', 4, 'more')).fields.kv_swap_restored).toBe('true');
});

it('gives everything back when agents are unregistered', async () => {
  const totalBytes = 1_000_000_000;
  await using landlord = await startAgents({ totalBytes });
  await registered(landlord);
  await landlord.decode('smol', 4, 'x');
  expect(landlord.agent('smol').kv).toBe('device');
  const made = await landlord.runtime.command({ type: 'makeRoom', freeBytes: null, deviceId: null });
  expect(made.ok).toBe(true);
  await until(() => landlord.agent('smol').kv === 'host', 20_000, 'its context to leave');
  const events = await landlord.runtime.events({ kinds: ['evicted'] });
  expect(events.ok ? events.value.map(({ reason }) => reason) : []).toContainEqual(
    expect.stringMatching(
      /^The context of smol left the device .*room was asked for; its state waits in host memory/,
    ),
  );
  for (const name of NAMES) expect((await landlord.ask(`UNREGISTER ${name}`))[0]).toMatch(/^OK agent_id=/);
  expect(landlord.runtime.state()).toMatchObject({ agents: [], tenants: [{ kind: 'desktop' }] });
  expect(landlord.runtime.state().devices[0]?.bookedBytes).toBe(0);
  const folder = hostFolder(landlord.socketPath.slice(0, -'/landlord.sock'.length));
  expect(readdirSync(folder)).toEqual([]);
});

it('puts an agent away where a person asks for it, as `landlord unload` does', async () => {
  await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
  await registered(landlord);
  await landlord.decode('smol', 4, 'x');
  const before = landlord.runtime.state().devices[0]?.bookedBytes ?? 0;
  const done = await landlord.runtime.command({ type: 'unload', model: 'smol', force: false });
  expect(done).toMatchObject({ ok: true, value: { message: expect.stringMatching(/^smol is put away/) } });
  expect(landlord.runtime.state().devices[0]?.bookedBytes).toBeLessThan(before);
  expect(landlord.agent('smol').kv).toBe('host');
  const { fields } = await landlord.decode('smol', 4, 'x');
  expect(fields).toMatchObject({ kv_swap_restored: 'true' });
  expect(await landlord.runtime.command({ type: 'unload', model: 'nobody', force: false })).toMatchObject({
    ok: false,
  });
});

it(
  `leaves memory flat and no file behind over ${SWITCHES} switches between agents of three models`,
  async () => {
    await using landlord = await startAgents({ totalBytes: await roomForOne() });
    await registered(landlord);
    const folder = hostFolder(landlord.socketPath.slice(0, -'/landlord.sock'.length));
    const resident = async (): Promise<number> => {
      const statm = readFileSync(`/proc/${await enginePid()}/statm`, 'utf8').split(' ');
      return Number(statm[1]) * 4096;
    };
    const turn = async (at: number): Promise<void> => {
      const name = NAMES[at % NAMES.length] ?? '';
      // Before its context is full each begins anew.
      if (landlord.agent(name).tokens !== null && (landlord.agent(name).tokens ?? 0) > 400) {
        const path = (await paths())[at % NAMES.length];
        await landlord.ask(`UNREGISTER ${name}`);
        expect((await landlord.ask(`REGISTER ${name}\t${path}\tcontext=512`))[0]).toMatch(/^OK/);
      }
      const { fields } = await landlord.decode(name, 2, 'x');
      if (at >= NAMES.length) expect(fields.kv_swap_evicted).not.toBe('');
      expect(fields.kv_reevaluated_tokens).toBeUndefined();
    };
    for (let at = 0; at < 30; at += 1) await turn(at);
    const before = await resident();
    for (let at = 0; at < SWITCHES; at += 1) await turn(at);
    const grown = (await resident()) - before;
    process.stdout.write(`resident memory of the engine after ${SWITCHES} switches: ${grown} bytes more\n`);
    expect(grown).toBeLessThan(16_000_000);
    expect(readdirSync(folder).length).toBeLessThanOrEqual(NAMES.length);
    for (const name of NAMES) await landlord.ask(`UNREGISTER ${name}`);
    expect(readdirSync(folder)).toEqual([]);
  },
  60_000 + SWITCHES * 1_000,
);

if (existsSync(NC))
  it('is all that nc -U needs', async () => {
    await using landlord = await startAgents({ totalBytes: 10_000_000_000 });
    const [path = ''] = await paths();
    const out = await new Promise<string>((resolve, reject) => {
      const child = spawn(NC, ['-N', '-U', landlord.socketPath], { stdio: ['pipe', 'pipe', 'inherit'] });
      let text = '';
      child.stdout.setEncoding('latin1').on('data', (part: string) => {
        text += part;
      });
      child.on('error', reject);
      child.on('close', () => resolve(text));
      child.stdin.end(`REGISTER smol\t${path}\nDECODE smol 24 Hello, my name is\nLIST\n`);
    });
    expect(out).toContain('OK invoke=DECODE agent_id=smol\nOK prompt_tokens=19 generated_tokens=24');
    expect(out).toContain('OK kv_swap_evicted=none kv_swap_restored=false\nBEGIN_RESPONSE\n');
    expect(out).toMatch(
      new RegExp(`OK agent_id=smol model=\\S*${basename(path)} booked_bytes=\\d+ kv=device\nOK end\n$`),
    );
  });

/** Of this process's children the one that runs the engine. */
async function enginePid(): Promise<number> {
  const tree = await processTree([{ pid: process.pid, startTimeTicks: null }]);
  const engine = tree.find(({ pid }) =>
    readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('engine-child'),
  );
  if (engine === undefined) throw new Error('no child runs the engine');
  return engine.pid;
}
