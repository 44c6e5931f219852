/**
 * Pictures of the window from real states: the real runtime over the demo's card and server, played
 * into each state and photographed, wide and narrow, light and dark.
 *
 *   node build/screenshots.ts [--out DIR] [--docs]
 *
 * --docs also replaces those of the README.
 */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Browser, chromium, type Page } from 'playwright-core';
import { BACKEND, BIG, DESKTOP, EMBEDDER, LEAN_BIG, NINE, VISION } from '../electron/core/demo/cast.ts';
import { findLlamaServer } from '../electron/core/demo/find-llama-server.ts';
import { buildWorld, type DemoWorld } from '../electron/core/demo/world.ts';
import { findChromium } from './setup/chromium.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const GB = 1_000_000_000;
const LIMIT_MS = 60_000;

const VIEWS = [
  { name: 'wide', width: 1100, height: 720 },
  { name: 'narrow', width: 420, height: 720 },
] as const;
const THEMES = ['light', 'dark'] as const;

interface Scene {
  readonly name: string;
  /** Plays the world into the state. */
  readonly play: (world: DemoWorld) => Promise<void>;
}

async function must(
  world: DemoWorld,
  command: Parameters<DemoWorld['runtime']['command']>[0],
): Promise<void> {
  const done = await world.runtime.command(command);
  if (!done.ok) throw new Error(`${command.type}: ${done.error.message}`);
}

const load = (world: DemoWorld, name: string): Promise<void> =>
  must(world, { type: 'load', model: `${BACKEND}/${name}`, force: false });

const SCENES: readonly Scene[] = [
  {
    name: 'fine',
    async play(world) {
      await must(world, { type: 'guards', mode: 'on', forMs: null, backend: null });
      for (const name of [NINE.name, EMBEDDER.name, VISION.name]) await load(world, name);
    },
  },
  {
    name: 'threatened',
    async play(world) {
      await must(world, { type: 'guards', mode: 'observe', forMs: null, backend: null });
      world.desktop({ browser: 12.6 * GB });
      await world.until(() => world.device().health === 'threatened', LIMIT_MS, 'the floor to be broken');
    },
  },
  {
    name: 'after-eviction',
    async play(world) {
      const from = world.events.length;
      await must(world, { type: 'guards', mode: 'on', forMs: null, backend: null });
      await world.event(from, ['evicted'], VISION.name, LIMIT_MS);
      await world.until(() => world.device().health === 'ok', LIMIT_MS, 'memory to be back');
    },
  },
  { name: 'three-agents', play: threeAgents },
  {
    name: 'asleep',
    async play(world) {
      turns.abort();
      turns = new AbortController();
      await world.until(
        () => world.model(VISION.name).busy === false,
        LIMIT_MS,
        'the last answer to be over',
      );
      await must(world, { type: 'sleep', forMs: 2 * 3_600_000 });
      await world.until(
        () => [VISION, BIG, LEAN_BIG].every(({ name }) => world.model(name).status === 'unloaded'),
        LIMIT_MS,
        'big models to have left',
      );
    },
  },
];

/** One generates and two wait, on a server whose lane lets one turn at a time through. */
async function threeAgents(world: DemoWorld): Promise<void> {
  world.desktop({ browser: DESKTOP.browserLater });
  const { runtime } = world;
  const url = runtime.state().backends.find(({ name }) => name === BACKEND)?.url ?? '';
  const settings = await runtime.ask('settings', {});
  if (!settings.ok) throw new Error(settings.error.message);
  let { fingerprint } = settings.value;
  for (const [key, yaml] of [
    ['backends', `- { name: ${BACKEND}, kind: llama.cpp, url: ${JSON.stringify(url)}, lanes: 1 }`],
    [
      'agents',
      '{ writer: { onBusy: wait }, reviewer: { onBusy: wait }, nightly: { class: batch, onBusy: wait } }',
    ],
  ] as const) {
    const changed = await runtime.ask('changeSetting', { key, yaml, fingerprint });
    if (!changed.ok) throw new Error(changed.error.message);
    fingerprint = changed.value.fingerprint;
  }
  await world.until(
    () => runtime.state().lanes.some((lane) => lane.configured),
    LIMIT_MS,
    'the lane to be there',
  );
  await load(world, VISION.name);
  for (const session of ['writer', 'reviewer', 'nightly']) {
    void chat(runtime.url, session);
    const asks = (): boolean => runtime.state().agents.some((agent) => agent.agent === session);
    await world.until(asks, LIMIT_MS, `${session} to be seen`);
  }
  const doing = (state: string): number =>
    runtime.state().agents.filter((agent) => agent.state === state).length;
  await world.until(
    () => doing('generating') >= 1 && doing('waiting') >= 2,
    LIMIT_MS,
    'one turn and a queue',
  );
}

/** Ends the answers that go on. */
let turns = new AbortController();

async function chat(url: string, session: string): Promise<void> {
  await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    signal: turns.signal,
    headers: { 'content-type': 'application/json', 'x-landlord-session': session },
    body: JSON.stringify({
      model: `${BACKEND}/${VISION.name}`,
      messages: [{ role: 'user', content: 'Write on.' }],
      max_tokens: 3000,
      ignore_eos: true,
      stream: true,
    }),
  })
    .then((answer) => answer.text())
    // Cut off, once it has been photographed.
    .catch(() => '');
}

async function photograph(browser: Browser, world: DemoWorld, scene: string, out: string): Promise<void> {
  for (const theme of THEMES) {
    const context = await browser.newContext({
      colorScheme: theme,
      reducedMotion: 'reduce',
      locale: 'en-GB',
    });
    const page = await context.newPage();
    await page.goto(world.runtime.openUrl);
    await page.locator('.connection.live').waitFor();
    await page.locator('.bar').first().waitFor();
    for (const { name, width, height } of VIEWS) {
      await page.setViewportSize({ width, height });
      await settle(page);
      await page.screenshot({ path: join(out, `${scene}-${name}-${theme}.png`) });
    }
    await context.close();
  }
  process.stdout.write(`${scene}\n`);
}

/** Fonts are there, and what was resized has been drawn. */
async function settle(page: Page): Promise<void> {
  // As text: this project's own library has no DOM.
  await page.evaluate(
    'document.fonts.ready.then(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))))',
  );
}

const { values } = parseArgs({
  options: { out: { type: 'string' }, docs: { type: 'boolean' } },
});
const out = values.out ?? join(root, 'out/screenshots');
mkdirSync(out, { recursive: true });
const executablePath = findChromium(process.env);
if (executablePath === null) throw new Error('No Chromium found: `npm test` installs it, or says how.');
const stopping = new AbortController();
process.once('SIGINT', () => stopping.abort());
const browser = await chromium.launch({
  executablePath,
  // As in the tests: a container can not set up its sandbox, and only our own page is opened.
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run'],
});
try {
  const world = await buildWorld({
    server: (await findLlamaServer()) ?? null,
    port: null,
    signal: stopping.signal,
    onState: () => {},
  });
  if (!world.ok) throw new Error(world.error.message);
  await using played = world.value;
  for (const { name, play } of SCENES) {
    await play(played);
    await photograph(browser, played, name, out);
  }
} finally {
  await browser.close();
}
if (values.docs === true) {
  for (const [from, to] of [
    ['after-eviction-wide-light', 'window'],
    ['three-agents-wide-dark', 'window-agents'],
    ['fine-narrow-light', 'window-narrow'],
  ] as const)
    copyFileSync(join(out, `${from}.png`), join(root, `build/docs/${to}.png`));
}
