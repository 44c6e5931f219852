import { armSignal } from '../actuators/reaper.ts';
import { orphansAmong } from '../backends/orphans.ts';
import { hostAndPort } from '../backends/own-address.ts';
import type { Sampler } from '../devices/sampler.ts';
import { comfyGuests } from '../guests/open-guests.ts';
import { followKernelLog, type KernelLog } from '../kernel-log/source.ts';
import { TroubleWatch } from '../kernel-log/trouble-watch.ts';
import { instanceOf } from '../parking/conversation.ts';
import { drain } from './drain-command.ts';
import type { Fleet } from './fleet.ts';
import type { CommandContext } from './load-command.ts';
import { offCardEvent, wrongGpuEvent } from './off-card.ts';
import type { Offers } from './offers.ts';
import { OrphanWatch } from './orphan-watch.ts';
import { slowModels } from './slow-models.ts';

/** How long a drain is offered after the kernel told of trouble. */
const OFFER_MS = 600_000;

/** What is looked after beside the models: processes without a server, guests on the card, the kernel's word. */
export class Lookouts {
  readonly guests: ReturnType<typeof comfyGuests>;
  readonly slow: ReturnType<typeof slowModels>;
  readonly #context: () => CommandContext;
  readonly #offers: Offers;
  readonly #sampler: () => Sampler;
  readonly #orphans = new OrphanWatch(armSignal);
  readonly #troubles = new TroubleWatch();
  /** Loads of models that were told to be off their card. */
  readonly #offCard = new Set<string>();
  #kernel: KernelLog | null = null;
  #troubleAtMs: number | null = null;

  constructor(parts: {
    readonly context: () => CommandContext;
    readonly offers: Offers;
    readonly sampler: () => Sampler;
  }) {
    this.#context = parts.context;
    this.#offers = parts.offers;
    this.#sampler = parts.sampler;
    this.guests = comfyGuests(parts.context, parts.offers, parts.sampler);
    this.slow = slowModels(parts.context, parts.offers);
  }

  /** Follows the kernel's log, where the settings do not say otherwise. */
  start(): void {
    if (this.#context().loop.settings.kernelLog === 'off') return;
    this.#kernel = followKernelLog((line) => this.heard(line));
  }

  stop(): void {
    this.#kernel?.stop();
  }

  /** Now and then. */
  async look(): Promise<void> {
    this.slow.look();
    this.#lookForOffCard();
    if (this.#troubleAtMs !== null && this.#nowMs() - this.#troubleAtMs > OFFER_MS) this.#offerDrain(null);
    await Promise.all([this.guests.look(), this.#lookForOrphans()]);
  }

  /** One line of the kernel's log. */
  heard(line: string): void {
    const { loop, journal } = this.#context();
    const nameOf = (pciAddress: string): string | null =>
      loop.sight.devices().find((device) => device.pciAddress === pciAddress)?.name ?? null;
    const told = this.#troubles.take(line, this.#nowMs(), nameOf);
    if (told === null) return;
    journal.tell(told.event);
    if (told.drains) this.#offerDrain(told.event.reason);
  }

  #lookForOffCard(): void {
    const { loop, journal, fleet } = this.#context();
    const nowMs = this.#nowMs();
    const processes = loop.sight.processes(nowMs);
    for (const view of loop.models.views()) {
      const load = `${view.id} ${instanceOf(view)}`;
      if (this.#offCard.has(load)) continue;
      const isPlaced = fleet.setting(view.backend)?.device != null;
      const event =
        offCardEvent(view, loop.sight.device(view.deviceId), processes, nowMs) ??
        (isPlaced ? null : wrongGpuEvent(view, loop.sight.devices(), processes, nowMs));
      if (event === null) continue;
      this.#offCard.add(load);
      journal.tell(event);
    }
  }

  #offerDrain(text: string | null): void {
    this.#troubleAtMs = text === null ? null : this.#nowMs();
    const offer = {
      id: 'drain-trouble',
      text: text ?? '',
      label: 'Unload every model',
      question: 'Unload every model, kept ones too? Busy ones leave after their request.',
      run: (signal: AbortSignal) => drain(this.#context(), { type: 'drain' }, signal),
    };
    this.#offers.set('kernel', text === null ? [] : [offer]);
  }

  async #lookForOrphans(): Promise<void> {
    const { loop, journal } = this.#context();
    const memory = loop.sight.processes(this.#nowMs());
    const pids = [...new Set(memory.map((use) => use.pid))];
    const [servers, present] = await Promise.all([this.#sampler().servers(), this.#sampler().facts(pids)]);
    if (!servers.ok) return;
    const { events, offers } = this.#orphans.look(
      servers.value,
      memory,
      present.ok ? present.value : null,
      portsOf(this.#context().fleet),
    );
    for (const event of events) journal.tell(event);
    this.#offers.set('orphans', offers);
    if (loop.settings.orphans !== 'end') return;
    for (const orphan of orphansAmong(servers.value)) {
      if (!offers.some((offer) => offer.id.startsWith(`orphan ${orphan.facts.pid} `))) continue;
      const done = await this.#orphans.end(orphan);
      journal.tell({
        kind: done.ok ? 'killed' : 'signal_refused',
        reason: done.ok
          ? `An orphan was ended, as \`orphans: end\` in the settings says. ${done.value.message}`
          : `Process ${orphan.facts.pid} serves nobody and could not be ended: ${done.error.message}`,
        numbers: { pid: orphan.facts.pid },
      });
    }
  }

  #nowMs(): number {
    return this.#context().clock.monotonicMs();
  }
}

/** Where backends and their models listen on this machine; null while it is not known what there is. */
function portsOf(fleet: Fleet): ReadonlySet<number> | null {
  const members = fleet.list();
  if (members.length === 0 || members.some(({ snapshot }) => snapshot.status === 'unknown')) return null;
  return new Set(
    members.flatMap(({ setting, snapshot }) => [
      ...(setting.url === null ? [] : [hostAndPort(setting.url).port]),
      ...(setting.front === null ? [] : [setting.front]),
      ...snapshot.models.flatMap((model) => model.port ?? []),
    ]),
  );
}
