import { type BenchReport, figures, quantile } from './report.ts';
import { MODEL, type ShowdownRig, startShowdownRig } from './showdown-rig.ts';

/** One actor's turns so far. */
export interface Actor {
  readonly name: string;
  /** From asking to the end of the answer. */
  readonly tookMs: number[];
  local: number;
  fallback: number;
  /** What went wrong, in words. */
  readonly faults: string[];
}

export interface ShowdownResult {
  readonly actors: readonly Actor[];
  readonly lastedMs: number;
  readonly mostAtOnce: number;
  readonly deflections: readonly { readonly reason: string }[];
  readonly cloudCount: number;
  /** Times that a turn after a deflected one was local again (rule 18). */
  readonly returns: number;
  readonly gatewayBytes: { readonly before: number; readonly after: number };
}

export interface ShowdownOptions {
  readonly lastsMs: number;
  /** Ends it sooner, where enough has been seen. */
  readonly isEnough?: (actors: readonly Actor[], returns: number) => boolean;
}

const AGENTS = `agents:
  writer: { onBusy: fallback }
  reader: { onBusy: wait }
  indexer: { class: batch, onBusy: wait }`;
/** The seed's indexer had 16 in flight, and the person before it 3 to 6 tokens a second. */
const INDEXER_CLIENTS = 16;
const CRON_EVERY_MS = 4_000;
/** Nobody may wait longer for a turn than this, whatever the others do. */
const STARVED_MS = 120_000;

/**
 * Two interactive sessions, one that goes elsewhere and one that waits, a cron job under `landlord turn`
 * that asks the backend itself, and a batch indexer, all at one router with one lane.
 */
export async function showdown(options: ShowdownOptions): Promise<ShowdownResult> {
  await using rig = await startShowdownRig(AGENTS);
  const stage = new Stage(rig, options);
  await stage.ask(actor('warming up'), 1, false);
  const before = rig.gatewayBytes();
  const startedMs = performance.now();
  await Promise.all([
    stage.session('writer', 48, 350),
    stage.session('reader', 48, 450),
    stage.cron(),
    ...Array.from({ length: INDEXER_CLIENTS }, () => stage.session('indexer', 96, 0)),
  ]);
  return {
    actors: stage.actors(),
    lastedMs: performance.now() - startedMs,
    mostAtOnce: rig.mostAtOnce(),
    deflections: await rig.events('deflected'),
    cloudCount: rig.cloudCount(),
    returns: stage.returns,
    gatewayBytes: { before, after: rig.gatewayBytes() },
  };
}

function actor(name: string): Actor {
  return { name, tookMs: [], local: 0, fallback: 0, faults: [] };
}

class Stage {
  readonly #rig: ShowdownRig;
  readonly #options: ShowdownOptions;
  readonly #endsAtMs: number;
  readonly #actors = new Map<string, Actor>();
  returns = 0;

  constructor(rig: ShowdownRig, options: ShowdownOptions) {
    this.#rig = rig;
    this.#options = options;
    this.#endsAtMs = performance.now() + options.lastsMs;
  }

  actors(): readonly Actor[] {
    return [...this.#actors.values()];
  }

  async session(name: string, tokens: number, pauseMs: number): Promise<void> {
    const mine = this.#actor(name);
    for (let turn = 0; this.#goesOn(); turn += 1) {
      await this.ask(mine, tokens, turn % 2 === 1);
      if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  /** A process of its own each time, that takes the lane by itself and knows nothing of the gateway. */
  async cron(): Promise<void> {
    const mine = this.#actor('cron');
    const script = `const answer = await fetch(${JSON.stringify(`${this.#rig.backendUrl}/v1/chat/completions`)}, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: ${JSON.stringify(body(64, false))} });
      await answer.text();
      process.exit(answer.ok ? 0 : 1);`;
    while (this.#goesOn()) {
      const fromMs = performance.now();
      const code = await this.#rig.turn('cron', script);
      mine.tookMs.push(performance.now() - fromMs);
      if (code === 0) mine.local += 1;
      else mine.faults.push(`its process ended with ${code}`);
      await new Promise((resolve) => setTimeout(resolve, CRON_EVERY_MS));
    }
  }

  async ask(mine: Actor, tokens: number, stream: boolean): Promise<void> {
    const fromMs = performance.now();
    const answer = await fetch(`${this.#rig.gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-landlord-session': mine.name },
      body: body(tokens, stream),
    });
    const text = await answer.text();
    mine.tookMs.push(performance.now() - fromMs);
    const route = answer.headers.get('x-landlord-route');
    const reason = answer.headers.get('x-landlord-reason') ?? '';
    if (answer.status !== 200 || text.includes('"error"'))
      mine.faults.push(`${answer.status}: ${text.slice(0, 200)}`);
    if (route === 'fallback') {
      mine.fallback += 1;
      this.#deflected.add(mine);
      if (!reason.includes('local_backend_busy'))
        mine.faults.push(`a deflection without its reason: ${reason}`);
    } else {
      mine.local += 1;
      if (this.#deflected.delete(mine)) this.returns += 1;
    }
  }

  readonly #deflected = new Set<Actor>();

  #actor(name: string): Actor {
    const mine = this.#actors.get(name) ?? actor(name);
    this.#actors.set(name, mine);
    return mine;
  }

  #goesOn(): boolean {
    if (this.#options.isEnough?.(this.actors(), this.returns) === true) return false;
    return performance.now() < this.#endsAtMs;
  }
}

function body(tokens: number, stream: boolean): string {
  return JSON.stringify({
    model: MODEL,
    max_tokens: tokens,
    stream,
    // Random weights would end a sentence at random.
    ignore_eos: true,
    messages: [{ role: 'user', content: 'abcdefgh' }],
  });
}

/** What must hold and did not, in words; none: it all held. */
export function showdownFaults(result: ShowdownResult): readonly string[] {
  const { actors, mostAtOnce, deflections, cloudCount, returns } = result;
  const faults: string[] = [];
  if (mostAtOnce !== 1) faults.push(`${mostAtOnce} requests generated at once in a lane of one`);
  for (const { name, local, tookMs, faults: own } of actors) {
    faults.push(...own.map((fault) => `${name}: ${fault}`));
    if (local === 0) faults.push(`${name} has never been served here`);
    const longestMs = Math.max(0, ...tookMs);
    if (longestMs > STARVED_MS) faults.push(`${name} waited ${(longestMs / 1000).toFixed(0)} s for one turn`);
  }
  if (deflections.length !== cloudCount)
    faults.push(`${cloudCount} turns went to the cloud, and ${deflections.length} of them are in the log`);
  for (const { reason } of deflections)
    if (!/local_backend_busy: .+ This turn went to cloud; the next one tries router first\./.test(reason))
      faults.push(`a deflection without its reason: ${reason}`);
  if (deflections.length === 0) faults.push('nobody was deflected');
  if (returns === 0) faults.push('nobody came back after a deflection');
  return faults;
}

export async function benchShowdown(short: boolean, minutes: number | null): Promise<BenchReport> {
  const result = await showdown({ lastsMs: (minutes ?? (short ? 0.5 : 1)) * 60_000 });
  const faults = showdownFaults(result);
  const { actors, lastedMs, mostAtOnce, deflections, returns, gatewayBytes } = result;
  const seconds = (ms: number): string => (ms / 1000).toFixed(1);
  return {
    part: 'showdown',
    sides: figures(actors.map(({ name, tookMs }) => ({ name, samplesUs: tookMs.map((ms) => ms * 1000) }))),
    notes: [
      `${seconds(lastedMs)} s, at most ${mostAtOnce} at once in the lane`,
      ...actors.map(
        ({ name, local, fallback, tookMs }) =>
          `${name}: ${local} turns here, ${fallback} elsewhere; longest ${seconds(Math.max(0, ...tookMs))} s, p99 ${seconds(quantile(tookMs, 0.99))} s`,
      ),
      `${deflections.length} deflections, each with its reason in the log; ${returns} times back here with the turn after`,
      `resident memory of the gateway's process: ${(gatewayBytes.before / 1e6).toFixed(0)} MB before, ${(gatewayBytes.after / 1e6).toFixed(0)} MB after`,
      ...(faults.length === 0 ? ['all of it held'] : faults.slice(0, 20).map((fault) => `FAULT: ${fault}`)),
    ],
    failed: faults.length > 0,
  };
}
