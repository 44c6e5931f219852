import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { NewEvent } from '../../../shared/events.ts';
import { formatBytes, formatDuration } from '../../../shared/format.ts';
import type { ParkingSettings } from '../../../shared/settings.ts';
import type { ParkedState } from '../../../shared/state.ts';
import type { Slot, SlotKeeper } from '../backends/router-slots.ts';
import type { EventStore } from '../events/event-store.ts';
import type { ModelView } from '../loop/model-view.ts';
import {
  type Conversation,
  instanceOf,
  LEAST_TOKENS,
  parkedState,
  printOf,
  readConversation,
  seating,
  slotFolderOf,
  surplus,
} from './conversation.ts';
import { Reuse } from './reuse.ts';
import {
  fileBytes,
  fileNameFor,
  hasRoom,
  objectionToFolder,
  removeFile,
  removeForgotten,
  weightsMark,
} from './slot-folder.ts';

/** All that parking asks of the rest. */
export interface ParkingWorld {
  view(modelId: string): ModelView | null;
  /** null: its backend keeps none. */
  slots(modelId: string): SlotKeeper | null;
  settings(): ParkingSettings;
  readonly store: Pick<EventStore, 'set' | 'all'>;
  tell(event: NewEvent): void;
  epochMs(): number;
  /** Unloads a model and loads it again, once it is idle; false: that did not come about. */
  restart(modelId: string): Promise<boolean>;
  /** Its backend's lane, where it is free and nobody of ours waits for the model. */
  lane(view: ModelView): Promise<Disposable | null>;
  /** What is shown has changed. */
  changed(): void;
}

const KEY = 'parked/';
const RESTORE_LIMIT_MS = 120_000;

/**
 * Conversations outlive an eviction (llama.cpp issue 28998 asks for it):
 *
 *   loaded, idle ─► slots saved ─► unloaded … loaded ─► slots brought back ─► next turn reads its new words only
 *                       │ nothing was kept: told                 │ failed: the instance is started anew
 *
 * What is saved is one slot's own conversation with its tokens, and goes only into a slot that holds
 * nothing, of the same weights, flags and build; the server itself compares the tokens with each
 * prompt, so that nobody is ever answered out of another one's words.
 */
export class Parking {
  readonly #world: ParkingWorld;
  #kept: readonly Conversation[] = [];
  readonly #restoring = new Map<string, Promise<void>>();
  /** What was told once of a model: folders that others read, servers that keep nothing. */
  readonly #told = new Set<string>();
  readonly #reuse: Reuse;

  constructor(world: ParkingWorld) {
    this.#world = world;
    this.#reuse = new Reuse((modelId) => this.#useless(modelId));
  }

  /**
   * Takes up what an earlier run kept, and cleans up after one that was killed. `ownFolder`: ours alone.
   * `isKnown`: what it kept could be read; else nobody knows which files are still wanted, and all stay.
   */
  async open(ownFolder: string, isKnown: boolean): Promise<void> {
    const known: Conversation[] = [];
    for (const [key, value] of Object.entries(await this.#world.store.all(KEY))) {
      const one = readConversation(value);
      if (one !== null && (await fileBytes(one.path)) === one.bytes) known.push(one);
      else void this.#world.store.set(key, null);
    }
    this.#kept = [...this.#kept, ...known];
    if (isKnown) await removeForgotten(ownFolder, new Set(this.#kept.map((one) => one.path)));
  }

  /** null: none. */
  parked(modelId: string): ParkedState | null {
    return parkedState(this.#kept.filter((one) => one.modelId === modelId));
  }

  /** Lets go what is too old or too much. */
  async tidy(): Promise<void> {
    const { settings, epochMs } = this.#world;
    await this.#drop(surplus(this.#kept, settings(), epochMs()));
  }

  /**
   * Saves what a model that is about to leave has read; resolves within about `limitMs`, and whatever goes
   * wrong the eviction goes on. Answers how many conversations were saved.
   */
  async park(modelId: string, limitMs: number): Promise<number> {
    const world = this.#world;
    const view = world.view(modelId);
    const slots = world.slots(modelId);
    if (view === null || slots === null || view.observed.status !== 'loaded' || limitMs <= 0) return 0;
    // Not what is being brought back, nor what could not be and is started anew.
    if (this.#restoring.has(modelId)) return 0;
    if (world.settings().limitBytes === 0 || this.#reuse.isUseless(modelId)) return 0;
    const folder = slotFolderOf(view.observed.args);
    if (folder === null) return 0;
    const objection = await objectionToFolder(folder);
    if (objection !== null) {
      this.#tellOnce(view, `Conversations of ${modelId} are not parked: ${objection}`);
      return 0;
    }
    const signal = AbortSignal.timeout(limitMs);
    const listed = await slots.list(view.observed.name, signal);
    if (!listed.ok) return 0;
    const worth = listed.value.filter(
      (slot) => !slot.isProcessing && (slot.tokens === null || slot.tokens >= LEAST_TOKENS),
    );
    const print = printOf(view, await weightsMark(view.observed.args, view.observed.modelPath));
    const instance = instanceOf(view);
    // Saved before by the same process, and not unloaded then: this is the later state of the same.
    await this.#drop(this.#kept.filter((one) => one.modelId === modelId && one.instance === instance));
    const startedAtMs = world.epochMs();
    const saved: Conversation[] = [];
    for (const slot of worth) {
      const one = await this.#save(view, slot, { folder, print, instance }, slots, signal);
      if (one !== null) saved.push(one);
    }
    if (saved.length === 0) return 0;
    await this.tidy();
    const stays = saved.filter((one) => this.#kept.includes(one));
    world.changed();
    if (stays.length === 0) return 0;
    const tokens = stays.reduce((sum, one) => sum + one.tokens, 0);
    const bytes = stays.reduce((sum, one) => sum + one.bytes, 0);
    world.tell({
      kind: 'parked',
      model: modelId,
      backend: view.backend,
      reason: `${counted(stays.length)} of ${modelId} ${stays.length === 1 ? 'is' : 'are'} parked: ${tokens} tokens in ${formatBytes(bytes)}. With its next load ${stays.length === 1 ? 'it need' : 'they need'} not be read again.`,
      numbers: { conversations: stays.length, tokens, bytes, tookMs: world.epochMs() - startedAtMs },
    });
    return stays.length;
  }

  /** It stays after all: what was saved a moment ago is older than what it holds. */
  async unpark(modelId: string): Promise<void> {
    const view = this.#world.view(modelId);
    if (view === null) return;
    const instance = instanceOf(view);
    await this.#drop(this.#kept.filter((one) => one.modelId === modelId && one.instance === instance));
  }

  /** It has just been seen loaded. At once, so that whoever is first to use it finds what it had read. */
  loaded(view: ModelView): void {
    const { id } = view;
    this.#reuse.forget(id);
    if (this.#restoring.has(id) || !this.#kept.some((one) => one.modelId === id)) return;
    const work = this.#bringBack(view)
      .catch(() => undefined)
      .finally(() => {
        this.#restoring.delete(id);
        this.#world.changed();
      });
    this.#restoring.set(id, work);
  }

  /** What a request for this model has to wait for; null: nothing. */
  before(modelId: string): Promise<void> | null {
    return this.#restoring.get(modelId) ?? null;
  }

  /** Reads off an answer's end what it did not have to read again. Milliseconds of prompt saved; null: none that is known. */
  answered(modelId: string, tail: string): number | null {
    return this.#reuse.answered(modelId, tail);
  }

  async #save(
    view: ModelView,
    slot: Slot,
    about: Pick<Conversation, 'print' | 'instance'> & { readonly folder: string },
    slots: SlotKeeper,
    signal: AbortSignal,
  ): Promise<Conversation | null> {
    const { epochMs, store } = this.#world;
    const before = this.#kept.find((one) => one.modelId === view.id && one.tokens > 0);
    const guessed = before === undefined || slot.tokens === null ? 0 : before.bytes / before.tokens;
    if (!(await hasRoom(about.folder, guessed * (slot.tokens ?? 0)))) {
      this.#tellOnce(
        view,
        `Conversations of ${view.id} are not parked: the disk of ${about.folder} is full.`,
      );
      return null;
    }
    const tag = createHash('sha256').update(view.id).digest('hex').slice(0, 12);
    const file = fileNameFor(tag, slot.id, epochMs());
    const path = join(about.folder, file);
    const answer = await slots.save(view.observed.name, slot.id, file, signal);
    const bytes = answer.ok ? await fileBytes(path) : null;
    const kept = answer.ok && answer.value.tokens > 0 && bytes === answer.value.bytes && bytes > 0;
    // As many as it holds, or the rest would pass for read.
    const isWhole = answer.ok && (slot.tokens === null || answer.value.tokens >= slot.tokens);
    if (!answer.ok || !kept || !isWhole) {
      await removeFile(path);
      if (signal.aborted) return null;
      const why = answer.ok
        ? `it answered that ${answer.value.tokens} of ${slot.tokens ?? 'its'} tokens were saved, and ${formatBytes(bytes ?? 0)} are there`
        : answer.error.message;
      if (answer.ok && slot.tokens === null && answer.value.tokens === 0) return null;
      this.#tellOnce(view, `A conversation of ${view.id} could not be parked: ${why}.`);
      return null;
    }
    const conversation: Conversation = {
      modelId: view.id,
      slot: slot.id,
      path,
      tokens: answer.value.tokens,
      bytes: answer.value.bytes,
      parkedAtMs: epochMs(),
      print: about.print,
      instance: about.instance,
      msPerToken: this.#reuse.msPerToken(view.id),
    };
    this.#kept = [...this.#kept, conversation];
    await store.set(KEY + file, conversation);
    return conversation;
  }

  async #bringBack(view: ModelView): Promise<void> {
    const world = this.#world;
    const slots = world.slots(view.id);
    const print = printOf(view, await weightsMark(view.observed.args, view.observed.modelPath));
    const mine = this.#kept.filter((one) => one.modelId === view.id);
    const others = mine.filter((one) => one.print !== print);
    if (others.length > 0) {
      await this.#drop(others);
      world.tell({
        kind: 'parking_failed',
        model: view.id,
        backend: view.backend,
        reason: `${counted(others.length)} of ${view.id} can't be brought back: it runs with other weights, flags or another build now.`,
        numbers: { conversations: others.length },
      });
    }
    const fitting = mine.filter((one) => one.print === print);
    if (slots === null || fitting.length === 0) return;
    const startedAtMs = world.epochMs();
    using _lane = await world.lane(view);
    const signal = AbortSignal.timeout(RESTORE_LIMIT_MS);
    const listed = await slots.list(view.observed.name, signal);
    if (!listed.ok) return;
    const back: Conversation[] = [];
    for (const { conversation, slot } of seating(fitting, listed.value)) {
      const why = await this.#restore(view, conversation, slot, slots, signal);
      if (why !== null) return this.#failed(view, conversation, why);
      back.push(conversation);
    }
    if (back.length === 0) return;
    this.#reuse.restored(view.id, back);
    await this.#drop(back);
    const tokens = back.reduce((sum, one) => sum + one.tokens, 0);
    const savedMs = back.every((one) => one.msPerToken !== null)
      ? Math.round(back.reduce((sum, one) => sum + one.tokens * (one.msPerToken ?? 0), 0))
      : null;
    const saves = savedMs === null ? '' : `, which takes some ${formatDuration(savedMs)} to read`;
    world.tell({
      kind: 'unparked',
      model: view.id,
      backend: view.backend,
      reason: `${counted(back.length)} of ${view.id} ${back.length === 1 ? 'is' : 'are'} back: ${tokens} tokens${saves}.`,
      numbers: { conversations: back.length, tokens, savedMs, tookMs: world.epochMs() - startedAtMs },
    });
  }

  /** null: it is back; else what went wrong, as a clause. */
  async #restore(
    view: ModelView,
    conversation: Conversation,
    slot: number,
    slots: SlotKeeper,
    signal: AbortSignal,
  ): Promise<string | null> {
    if ((await fileBytes(conversation.path)) !== conversation.bytes) return 'its file has been changed';
    const file = conversation.path.slice(conversation.path.lastIndexOf('/') + 1);
    const answer = await slots.restore(view.observed.name, slot, file, signal);
    if (!answer.ok) return answer.error.message.replace(/\.\s*$/, '');
    if (answer.value.tokens !== conversation.tokens)
      return `${answer.value.tokens} of ${conversation.tokens} tokens came back`;
    return null;
  }

  /** A restore that failed leaves a process nobody can trust (llama.cpp): it is started anew, and what failed is not tried again. */
  async #failed(view: ModelView, conversation: Conversation, why: string): Promise<void> {
    await this.#drop([conversation]);
    const restarted = await this.#world.restart(view.id);
    this.#world.tell({
      kind: 'parking_failed',
      model: view.id,
      backend: view.backend,
      reason: `A conversation of ${view.id} could not be brought back (${why}). ${
        restarted
          ? 'The model was started anew, so that nothing of it is left; the conversation is read again.'
          : 'The model should be started anew, and is not idle: unload it when it is.'
      }`,
      numbers: { tokens: conversation.tokens, restarted: restarted ? 1 : 0 },
    });
  }

  #useless(modelId: string): void {
    this.#world.tell({
      kind: 'parking_failed',
      model: modelId,
      backend: modelId.slice(0, modelId.indexOf('/')),
      reason: `${modelId} says that it brings conversations back, and then reads them again all the same, as llama-server does with sliding windows and recurrent layers. None of it is parked until VRAM Landlord is started anew.`,
      numbers: {},
    });
    void this.#drop(this.#kept.filter((one) => one.modelId === modelId));
  }

  #tellOnce(view: ModelView, reason: string): void {
    if (this.#told.has(reason)) return;
    this.#told.add(reason);
    this.#world.tell({ kind: 'parking_failed', model: view.id, backend: view.backend, reason, numbers: {} });
  }

  async #drop(gone: readonly Conversation[]): Promise<void> {
    if (gone.length === 0) return;
    this.#kept = this.#kept.filter((one) => !gone.includes(one));
    this.#world.changed();
    for (const { path } of gone) {
      await removeFile(path);
      await this.#world.store.set(KEY + path.slice(path.lastIndexOf('/') + 1), null);
    }
  }
}

function counted(conversations: number): string {
  return conversations === 1 ? '1 conversation' : `${conversations} conversations`;
}
