import { formatBytes, formatDuration } from '../../../shared/format.ts';
import { fallingBytesPerS } from './hysteresis.ts';
import { isKept, type Loser, leastHarm, losersOn } from './losers.ts';
import { wasNewcomer } from './memory.ts';
import { type Newcomer, newcomersOn } from './newcomer.ts';
import { excessBigs } from './one-big.ts';
import { isThreatened } from './verdict.ts';
import { type GuardView, isPending, isStaying, isTrusted, modelsOn, usableDevices } from './view.ts';
import { freeClause, kill, shortName, unload } from './wording.ts';
import type { Decision, GuardDevice, GuardModel } from './world.ts';

/**
 * Rule 7, and rule 0 of the seed: a model is loading, and what it has still to take is not there.
 *
 *   quiet models leave so that the floor is kept (the hard floor, once no other big model stays)
 *   busy ones only where the newcomer would otherwise end under the hard floor; where even that can't
 *   be reached, where it would fail outright; and where nothing would help, none is cut
 *   the newcomer itself leaves where the race policy keeps the busy one that would have to go
 *   a loser that is still there `raceGrace` after it was asked is killed, if its process is proven
 *   and the newcomer still loads, or is loaded beside it on a card that is past its end
 *
 * A footprint nobody knows makes a race only once free memory is below the floor or about to be.
 * With `maxBig` a number, a big newcomer displaces the big models beyond it: quiet ones at once, busy
 * ones only where the bytes are needed, or where it can't be told whether they are. A quiet one whose
 * bytes are not needed is first asked whether it has begun to work since the last look: nothing is lost
 * by waiting for that one answer (a few milliseconds), and a request could be.
 *
 * Rule 6 comes first: without a fresh reading nothing is decided here, whatever an event says.
 */
export function raceRule(view: GuardView): readonly Decision[] {
  return usableDevices(view.world).flatMap((device) => {
    const decisions: Decision[] = [];
    let now = view;
    for (const { model } of newcomersOn(view, device)) {
      // Each newcomer meets what the one before it has already caused to leave.
      const newcomer = newcomersOn(now, device).find((other) => other.model === model);
      if (newcomer === undefined) continue;
      const next = [...killsFor(now, device, newcomer), ...raceFor(now, device, newcomer)];
      decisions.push(...next);
      now = { ...now, leaving: new Set([...now.leaving, ...next.map((decision) => decision.modelId)]) };
    }
    return [...decisions, ...killsOfNewcomers(view, device), ...killsAfterLoad(view, device)];
  });
}

function raceFor(view: GuardView, device: GuardDevice, newcomer: Newcomer): readonly Decision[] {
  const losers = losersOn(view, device, newcomer.model);
  const displaced = displacedBigs(view, device, newcomer, losers);
  const soft = softLosers(view, device, newcomer, losers, displaced);
  const left = losers.filter((loser) => !soft.includes(loser));
  const hard = hardLosers(device, newcomer, left, soft, displaced);
  const gentle = shortOf(newcomer, hardFloor(device), []) <= 0;
  if (hard === 'newcomer leaves') {
    const busy = left.find((loser) => loser.kept);
    if (busy !== undefined && !newcomer.model.pinned && view.mayTouch(newcomer.model))
      return [newcomerLeaves(device, newcomer, busy.model)];
    return soft.map((loser) => loserLeaves(device, newcomer, loser, false));
  }
  return [...soft, ...hard].map((loser) => loserLeaves(device, newcomer, loser, loser.quiet && gentle));
}

/** Bytes missing for the newcomer to leave `marginBytes` free, once `leaving` are gone; ≤ 0: none. */
function shortOf(newcomer: Newcomer, marginBytes: number, leaving: readonly Loser[]): number {
  if (newcomer.comingUnknown || leaving.some((loser) => loser.model.bytes === null)) return 0;
  const given = leaving.reduce((sum, loser) => sum + (loser.model.bytes ?? 0), 0);
  // Unknown: what is missing now is all that can be said.
  const needed = newcomer.remainingBytes ?? 0;
  return needed + marginBytes - newcomer.availableBytes - given;
}

function hardFloor(device: GuardDevice): number {
  return device.hardFloorBytes ?? 0;
}

/** Big models a numeric `maxBig` has no place for beside a big newcomer. */
function displacedBigs(
  view: GuardView,
  device: GuardDevice,
  newcomer: Newcomer,
  losers: readonly Loser[],
): readonly Loser[] {
  if (!newcomer.model.big) return [];
  const excess = excessBigs(view, device.id);
  return losers.filter((loser) => excess.includes(loser.model));
}

function softLosers(
  view: GuardView,
  device: GuardDevice,
  newcomer: Newcomer,
  losers: readonly Loser[],
  displaced: readonly Loser[],
): readonly Loser[] {
  const chosen = displaced.filter((loser) => loser.quiet);
  if (newcomer.remainingBytes === null && !isShrinking(view, device)) return chosen;
  for (const loser of losers) {
    if (!loser.soft || chosen.includes(loser)) continue;
    const margin = softMargin(view, device, newcomer.model, chosen);
    // Of unknown size and eating up what is free: one at a time, and what it gives is seen first.
    const first = newcomer.remainingBytes === null && chosen.length === 0 && newcomer.comingBytes === 0;
    if (!first && shortOf(newcomer, margin, chosen) <= 0) break;
    chosen.push(loser);
  }
  return chosen;
}

/** A big newcomer may go down to the hard floor once no other big model stays beside it (design §1). */
function softMargin(
  view: GuardView,
  device: GuardDevice,
  newcomer: GuardModel,
  leaving: readonly Loser[],
): number {
  const others = modelsOn(view, device.id).some(
    (model) =>
      model !== newcomer &&
      model.big &&
      isStaying(view, model) &&
      !leaving.some((loser) => loser.model === model),
  );
  return newcomer.big && !others ? hardFloor(device) : (device.floorBytes ?? hardFloor(device));
}

function isShrinking(view: GuardView, device: GuardDevice): boolean {
  return isThreatened(device, fallingBytesPerS(view.memory.recentFree[device.id] ?? []));
}

function hardLosers(
  device: GuardDevice,
  newcomer: Newcomer,
  losers: readonly Loser[],
  soft: readonly Loser[],
  displaced: readonly Loser[],
): readonly Loser[] | 'newcomer leaves' {
  const unknown = newcomer.remainingBytes === null;
  const forced = unknown ? losers.filter((loser) => displaced.includes(loser)) : [];
  const short = shortOf(newcomer, hardFloor(device), [...soft, ...forced]);
  if (short <= 0 && forced.length === 0) return [];
  if (forced.some((loser) => loser.kept)) return 'newcomer leaves';
  if (short <= 0) return forced;

  // The big models a count has no place for go before any other busy one.
  const open = losers.filter((loser) => !loser.kept && !forced.includes(loser));
  const ordered = [
    ...open.filter((loser) => displaced.includes(loser)),
    ...open.filter((loser) => !displaced.includes(loser)),
  ];
  const enough = leastHarm(ordered, short);
  if (enough !== null) return [...forced, ...enough];
  if (losers.some((loser) => loser.kept)) return 'newcomer leaves';
  // Not even the hard floor can be kept: cut only where that still saves the load.
  const last = leastHarm(ordered, shortOf(newcomer, 0, [...soft, ...forced]));
  return [...forced, ...(last ?? [])];
}

/** Losers that were asked and are still there; only while the newcomer still misses their bytes. */
function killsFor(view: GuardView, device: GuardDevice, newcomer: Newcomer): readonly Decision[] {
  const { nowMs, policy } = view.world;
  return modelsOn(view, device.id).flatMap((model) => {
    const askedAtMs = model.unloadRequestedAtMs;
    if (askedAtMs === null || !isPending(model) || model.status === 'loading') return [];
    if (model.pinned || !view.mayTouch(model) || model.signalable !== true) return [];
    if (isKept(view, model, newcomer.model)) return [];
    const waitedMs = nowMs - Math.max(askedAtMs, newcomer.model.statusSinceMs);
    if (waitedMs < policy.raceGraceMs || !isMissed(view, device, newcomer, model)) return [];
    const { model: loading } = newcomer;
    const why = `it was asked to make room for ${shortName(loading.id)} ${formatDuration(nowMs - askedAtMs)} ago and still holds ${formatBytes(model.bytes)}`;
    const numbers = { waitedMs: nowMs - askedAtMs, freeBytes: device.freeBytes };
    return [kill(model, 'race', why, numbers, loading.id)];
  });
}

function isMissed(view: GuardView, device: GuardDevice, newcomer: Newcomer, model: GuardModel): boolean {
  if (newcomer.remainingBytes === null) {
    const displaces = view.world.policy.maxBig !== 'fit' && newcomer.model.big && model.big;
    return displaces || (device.freeBytes ?? 0) < hardFloor(device);
  }
  const counted = isTrusted(model, view.world.nowMs) ? (model.bytes ?? 0) : 0;
  return newcomer.remainingBytes + hardFloor(device) > newcomer.availableBytes - counted;
}

/** A newcomer that lost to a busy model and goes on loading, and for which there still is no room. */
function killsOfNewcomers(view: GuardView, device: GuardDevice): readonly Decision[] {
  const { nowMs, policy } = view.world;
  return modelsOn(view, device.id).flatMap((model) => {
    const askedAtMs = model.unloadRequestedAtMs;
    const lost = view.memory.decided[model.id]?.cause === 'race' && wasNewcomer(view.memory, model.id);
    if (askedAtMs === null || !isPending(model) || !lost || view.leaving.has(model.id)) return [];
    if (model.pinned || !view.mayTouch(model) || model.signalable !== true) return [];
    if (nowMs - askedAtMs < policy.raceGraceMs || !isTooMuch(device, model)) return [];
    const why = `it lost a loading race, was asked to stop ${formatDuration(nowMs - askedAtMs)} ago and is still there`;
    return [kill(model, 'race', why, { waitedMs: nowMs - askedAtMs, freeBytes: device.freeBytes }, null)];
  });
}

/** What is there, and what it has still to take, does not fit: others may have given room meanwhile. */
function isTooMuch(device: GuardDevice, { status, predictedBytes, seenBytes }: GuardModel): boolean {
  if (isOverfull(device)) return true;
  if (status === 'loaded') return false;
  const remainingBytes = predictedBytes === null ? null : predictedBytes - (seenBytes ?? 0);
  return remainingBytes === null || remainingBytes + hardFloor(device) > (device.freeBytes ?? 0);
}

function isOverfull(device: GuardDevice): boolean {
  return device.evictionUnderWay === true || (device.freeBytes ?? 0) < hardFloor(device);
}

/**
 * A loser that outlived its race: the newcomer is loaded already (a fast disk), both are on the card,
 * and the card is past its end. It was told to go; what it holds is what the driver now moves out.
 */
function killsAfterLoad(view: GuardView, device: GuardDevice): readonly Decision[] {
  const { nowMs, policy } = view.world;
  if (!isOverfull(device) || newcomersOn(view, device).length > 0) return [];
  return modelsOn(view, device.id).flatMap((model) => {
    const askedAtMs = model.unloadRequestedAtMs;
    const lost = view.memory.decided[model.id]?.cause === 'race' && !wasNewcomer(view.memory, model.id);
    if (askedAtMs === null || !isPending(model) || !lost || view.leaving.has(model.id)) return [];
    if (model.pinned || !view.mayTouch(model) || model.signalable !== true) return [];
    const waitedMs = nowMs - askedAtMs;
    if (waitedMs < policy.raceGraceMs) return [];
    const why = `it was asked to make room ${formatDuration(waitedMs)} ago and still holds ${formatBytes(model.bytes)}, and only ${formatBytes(device.freeBytes)} is free`;
    return [kill(model, 'race', why, { waitedMs, freeBytes: device.freeBytes }, null)];
  });
}

function figures(device: GuardDevice, newcomer: Newcomer) {
  return {
    neededBytes: newcomer.remainingBytes,
    freeBytes: device.freeBytes,
    comingBytes: newcomer.comingBytes,
    floorBytes: device.floorBytes,
    hardFloorBytes: device.hardFloorBytes,
  };
}

function needs(newcomer: Newcomer): string {
  const name = shortName(newcomer.model.id);
  return newcomer.remainingBytes === null
    ? `${name} is loading and nobody knows yet how much it needs`
    : `${name} is loading and needs ${formatBytes(newcomer.remainingBytes)}`;
}

function loserLeaves(
  device: GuardDevice,
  newcomer: Newcomer,
  { model, quiet }: Loser,
  requireIdle: boolean,
): Decision {
  const room = `${needs(newcomer)}, ${freeClause(device.freeBytes, newcomer.comingBytes)}`;
  const cut = quiet
    ? ''
    : model.busy === null
      ? ' (whether it is busy is not known)'
      : ' (it is cut off mid-request)';
  const slow =
    !quiet && model.signalable === false
      ? '; its process is not ours to signal, so it may stay for the server’s stop-timeout (10 s unless its preset sets `stop-timeout`)'
      : '';
  return unload(model, 'race', `${room}${cut}${slow}`, figures(device, newcomer), {
    requireIdle,
    forModelId: newcomer.model.id,
  });
}

function newcomerLeaves(device: GuardDevice, newcomer: Newcomer, busy: GuardModel): Decision {
  const { model } = newcomer;
  const serves = busy.turnClass === 'interactive' ? 'serves an interactive turn' : 'serves a request';
  const need =
    newcomer.remainingBytes === null
      ? 'nobody knows yet how much it needs'
      : `it needs ${formatBytes(newcomer.remainingBytes)}`;
  const why = `${need}, ${freeClause(device.freeBytes, newcomer.comingBytes)}, and ${shortName(busy.id)} ${serves} and stays`;
  return unload(model, 'race', why, figures(device, newcomer), { requireIdle: false, forModelId: busy.id });
}
