import { BIG, DESKTOP, EMBEDDER, IDLE_MS, LEAN_BIG, LONG_PROMPT_CHARS, NINE, VISION } from './cast.ts';
import { isAlive, see } from './children.ts';
import { NotAsTold, type Stage } from './stage.ts';
import * as story from './story.ts';
import type { DemoWorld } from './world.ts';

/** A router ends a busy model by force after 10 s by default; the rest is for a slow machine. */
const STOP_LIMIT_MS = 25_000;
const LIMIT_MS = 20_000;
/** How much is let go out to system RAM before it is enough to see. */
const ENOUGH_GTT_BYTES = 9_000_000_000;
const NEARLY_NOTHING_BYTES = 500_000_000;
/** Watched for this long after the music player got its memory. */
const CALM_MS = 1_500;

/** Plays both halves; what comes back is what each came to. Throws NotAsTold. */
export async function play(world: DemoWorld, stage: Stage, isReal: boolean): Promise<void> {
  const off = await watchedOnly(world, stage, isReal);
  const on = await guarded(world, stage);
  stage.say(story.ending({ big: LEAN_BIG.name, reader: VISION.name }, off, on));
  stage.say(story.whatNext());
}

// ——— act 1 ———

async function watchedOnly(world: DemoWorld, stage: Stage, isReal: boolean): Promise<story.Morning> {
  stage.say([{ kind: 'act', text: 'Act 1: an October morning, nobody minds the memory' }]);
  await loadResidents(world, stage);
  const from = world.events.length;
  await fill(world, stage);
  const would = await world.event(from, ['would_evict'], BIG.name, LIMIT_MS);
  stage.say([...story.wouldHave(would), story.idleNote(IDLE_MS)]);
  const pushed = await overflow(world, stage);
  await stopByHand(world, stage);
  const lost = await loseRace(world, stage, isReal);
  return {
    freeWhenAskedBytes: pushed.freeBeforeBytes,
    gttBytes: pushed.gttBytes,
    bigAnswer: lost.answer,
    readerGoneMs: lost.readerGoneMs,
  };
}

async function loadResidents(world: DemoWorld, stage: Stage): Promise<void> {
  await Promise.all([world.router.load(NINE.name), world.router.load(EMBEDDER.name)]);
  await world.until(
    () => [NINE, EMBEDDER].every((role) => world.model(role.name).measuredBytes === role.bytes),
    LIMIT_MS,
    `${NINE.name} and ${EMBEDDER.name} were not loaded`,
  );
  const desktop = world.runtime.state().tenants.find((tenant) => tenant.kind === 'desktop');
  stage.say([
    ...story.residents({
      desktopBytes: desktop?.measuredBytes ?? null,
      nine: { name: NINE.name, bytes: world.model(NINE.name).measuredBytes },
      embedder: { name: EMBEDDER.name, bytes: world.model(EMBEDDER.name).measuredBytes },
      freeBytes: world.device().freeBytes,
    }),
    { kind: 'memory', state: world.runtime.state() },
  ]);
}

async function fill(world: DemoWorld, stage: Stage): Promise<void> {
  const before = world.device().usedBytes;
  const answer = await world.answered(world.router.ask(BIG.name, 16), LIMIT_MS, BIG.name);
  if (answer.status !== 200) throw new NotAsTold(`${BIG.name} did not answer: ${story.statusText(answer)}`);
  // By the card's own figure: guarded, it is gone again before a list of processes has to have it.
  const isFull = (): boolean => (world.device().freeBytes ?? Number.POSITIVE_INFINITY) < NEARLY_NOTHING_BYTES;
  await world.until(isFull, LIMIT_MS, `${BIG.name} did not fill the card`);
  const { usedBytes, totalBytes, freeBytes } = world.device();
  const modelBytes = usedBytes === null || before === null ? null : usedBytes - before;
  stage.say([
    ...story.filled({ model: BIG.name, modelBytes, answer, usedBytes, totalBytes, freeBytes }),
    { kind: 'memory', state: world.runtime.state() },
  ]);
}

async function overflow(world: DemoWorld, stage: Stage): Promise<story.PushedOut> {
  const from = world.events.length;
  const freeBeforeBytes = world.device().freeBytes;
  const askedBytes = DESKTOP.playerMore;
  stage.say(story.askingForMore({ askedBytes, freeBeforeBytes }));
  const startedAtMs = performance.now();
  world.desktop({ player: DESKTOP.player + askedBytes });
  const event = await world.event(from, ['driver_eviction'], null, LIMIT_MS);
  const gtt = (): number => world.device().gttUsedBytes ?? 0;
  await world.until(() => gtt() > ENOUGH_GTT_BYTES, LIMIT_MS, 'the driver did not move model memory out');
  const facts = { askedBytes, freeBeforeBytes, gttBytes: gtt(), overMs: performance.now() - startedAtMs };
  stage.say([...story.pushedOut(facts, event), { kind: 'memory', state: world.runtime.state() }]);
  return facts;
}

async function stopByHand(world: DemoWorld, stage: Stage): Promise<void> {
  const startedAtMs = performance.now();
  await world.router.unload(BIG.name);
  await world.until(
    () => world.device().gttUsedBytes === 0 && (world.device().freeBytes ?? 0) > LEAN_BIG.bytes,
    LIMIT_MS,
    `${BIG.name} was not unloaded`,
  );
  const tookMs = performance.now() - startedAtMs;
  stage.say(story.stoppedByHand({ model: BIG.name, tookMs, freeBytes: world.device().freeBytes }));
}

async function loseRace(world: DemoWorld, stage: Stage, isReal: boolean): Promise<story.LostRace> {
  const from = world.events.length;
  await readPage(world, stage);
  const asked = world.router.ask(LEAN_BIG.name, 16);
  const would = await world.event(from, ['would_evict'], VISION.name, LIMIT_MS);
  stage.say(story.wouldHave(would));
  const reader = see(world.model(VISION.name).pid ?? 0);
  const stopAskedAtMs = performance.now();
  await world.router.unload(VISION.name);
  const answer = await world.answered(asked, LIMIT_MS, LEAN_BIG.name);
  if (answer.status === 200)
    throw new NotAsTold(`${LEAN_BIG.name} was to fail for want of memory, and answered`);
  const refusal = world.refusals.find((one) => one.model === LEAN_BIG.name);
  const facts = {
    reader: VISION.name,
    big: LEAN_BIG.name,
    answer,
    missingBytes: refusal?.missingBytes ?? null,
    readerGoneMs: null,
  };
  stage.say([...story.lostRace(facts), { kind: 'memory', state: world.runtime.state() }]);
  if (!isReal || reader === null) return facts;
  await world.until(() => !isAlive(reader), STOP_LIMIT_MS, `the router did not end ${VISION.name}`);
  const ended = { ...facts, readerGoneMs: performance.now() - stopAskedAtMs };
  stage.say(story.readerGone(ended));
  return ended;
}

/** The vision model is loaded and deep in a long request. */
async function readPage(world: DemoWorld, stage: Stage): Promise<void> {
  world.desktop({ browser: DESKTOP.browserLater });
  void world.router.ask(VISION.name, LONG_PROMPT_CHARS);
  await world.until(
    () => {
      const model = world.model(VISION.name);
      return model.busy === true && model.measuredBytes === VISION.bytes && model.pid !== null;
    },
    LIMIT_MS,
    `${VISION.name} was not seen at work`,
  );
  stage.say(
    story.reading({
      reader: VISION.name,
      readerBytes: world.model(VISION.name).measuredBytes,
      freeBytes: world.device().freeBytes,
      big: LEAN_BIG.name,
      bigBytes: LEAN_BIG.bytes,
    }),
  );
}

// ——— act 2 ———

async function guarded(world: DemoWorld, stage: Stage): Promise<story.Morning> {
  stage.say([{ kind: 'act', text: 'Act 2: the same morning, with the guards on' }]);
  const told = world.events.length;
  const done = await world.runtime.command({ type: 'guards', mode: 'on', forMs: null, backend: null });
  if (!done.ok) throw new NotAsTold(done.error.message);
  stage.say([story.eventLine(await world.event(told, ['guards_changed'], null, LIMIT_MS))]);
  world.desktop({ browser: DESKTOP.browser, player: DESKTOP.player });
  await world.until(
    () => (world.device().freeBytes ?? 0) > BIG.bytes,
    STOP_LIMIT_MS,
    `${VISION.name} is still there`,
  );
  const player = await giveRoom(world, stage);
  const won = await winRace(world, stage);
  return {
    freeWhenAskedBytes: player.freeBeforeBytes,
    gttBytes: player.gttBytes,
    bigAnswer: won.answer,
    readerGoneMs: won.readerGoneMs,
  };
}

async function giveRoom(world: DemoWorld, stage: Stage): Promise<story.LeftForRoom> {
  const from = world.events.length;
  await fill(world, stage);
  const event = await world.event(from, ['evicted', 'killed'], BIG.name, LIMIT_MS);
  stage.say([story.eventLine(event), story.idleNote(IDLE_MS)]);
  await world.until(
    () => (world.device().freeBytes ?? 0) > BIG.bytes,
    LIMIT_MS,
    `${BIG.name} gave nothing back`,
  );
  const freeBeforeBytes = world.device().freeBytes;
  world.desktop({ player: DESKTOP.player + DESKTOP.playerMore });
  let gttBytes = 0;
  const watchUntilMs = performance.now() + CALM_MS;
  await world.until(
    () => {
      gttBytes = Math.max(gttBytes, world.device().gttUsedBytes ?? 0);
      return performance.now() > watchUntilMs;
    },
    CALM_MS + LIMIT_MS,
    'time stood still',
  );
  if (world.events.slice(from).some((one) => one.kind === 'driver_eviction'))
    throw new NotAsTold('the driver moved memory out although the guards were on');
  const facts = {
    model: BIG.name,
    askedBytes: DESKTOP.playerMore,
    freeBeforeBytes,
    freeAfterBytes: world.device().freeBytes,
    gttBytes,
  };
  stage.say([...story.leftForRoom(facts), { kind: 'memory', state: world.runtime.state() }]);
  return facts;
}

async function winRace(world: DemoWorld, stage: Stage): Promise<story.WonRace> {
  const from = world.events.length;
  await readPage(world, stage);
  const { pid } = world.model(VISION.name);
  const asked = world.router.ask(LEAN_BIG.name, 16);
  const event = await world.event(from, ['killed', 'evicted'], VISION.name, LIMIT_MS);
  const gone = { reader: VISION.name, pid, event, readerGoneMs: event.numbers.tookMs ?? null };
  stage.say(story.madeWay(gone));
  const answer = await world.answered(asked, LIMIT_MS, LEAN_BIG.name);
  if (answer.status !== 200)
    throw new NotAsTold(
      `${LEAN_BIG.name} did not answer, guarded though it was: ${story.statusText(answer)}`,
    );
  await world.until(
    () => world.model(LEAN_BIG.name).measuredBytes === LEAN_BIG.bytes,
    LIMIT_MS,
    `${LEAN_BIG.name} was not seen to hold its memory`,
  );
  const facts = { ...gone, big: LEAN_BIG.name, answer };
  stage.say([...story.wonRace(facts), { kind: 'memory', state: world.runtime.state() }]);
  return facts;
}
