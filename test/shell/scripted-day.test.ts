import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Command } from '../../electron/core/runtime-api.ts';
import { startShell } from '../../electron/shell/app.ts';
import { ok } from '../../shared/errors.ts';
import type { NewEvent } from '../../shared/events.ts';
import { createFakeElectron } from '../fakes/electron.ts';
import { change, firstState, morning, publish, type Scene, told } from '../support/day.ts';
import { createFakeDeskSet, type FakeDeskSet } from '../support/fake-desk.ts';
import { createFakeRuntime, sampleAgent } from '../support/fake-runtime.ts';
import { createFakeSource } from '../support/fake-source.ts';

const DOCUMENT = new URL('../../build/docs/scripted-day.md', import.meta.url);
const GB = 1_000_000_000;
const CODER = 'router/coder-9b';
const WRITER = 'router/writer-27b';
const SIZES: Readonly<Record<string, number>> = { [CODER]: 7.4 * GB, [WRITER]: 16.9 * GB };

const INTRODUCTION = `# A day in the tray

What the tray, its menu and the notifications say over a day on one card of 32 GB, of which the desktop
keeps 4 GB. A test plays the day to the app through a stand-in for Electron and compares what it prints
with this page; \`LANDLORD_WRITE_DOCS=1\` writes it anew. \`▸\` opens a submenu, \`·\` is only to be read. The tooltip has the
exact figures; those of the menu go in steps, so that it does not change while it is open.
`;

/** Plays the day and keeps what it looked like. */
class Day {
  readonly scene: Scene = morning();
  readonly runtime = createFakeRuntime(firstState(this.scene, Date.now()));
  readonly source = createFakeSource(this.runtime);
  readonly electron = createFakeElectron();
  readonly pages: string[] = [INTRODUCTION];
  #set: FakeDeskSet | null = null;
  #notified = 0;
  #menu: readonly string[] = [];

  get set(): FakeDeskSet {
    if (this.#set === null) throw new Error('the app has been started');
    return this.#set;
  }

  async start(): Promise<void> {
    this.runtime.answer = (command) => this.obey(command);
    const started = startShell({
      electron: this.electron,
      connect: async () => ok(this.source),
      pageDir: '/build/renderer',
      preloadPath: '/build/preload.cjs',
      hidden: true,
      makeDesk: async ({ source, window, quit }) => {
        this.#set = createFakeDeskSet({
          source: this.source,
          window,
          quit,
          baseUrl: () => `${source.url()}/v1`,
        });
        return this.#set.desk;
      },
    });
    this.electron.ready();
    await started;
  }

  /** What the runtime would do. */
  obey(command: Command): ReturnType<typeof this.runtime.answer> {
    if (command.type === 'sleep') {
      const until = command.forMs === null ? null : new Date(Date.now() + command.forMs).toISOString();
      this.scene.asleep = { since: new Date().toISOString(), until };
      this.leave(WRITER);
      this.happens(told.slept());
      this.happens(told.evicted('writer-27b', 'big models are asleep', 16.9 * GB));
    }
    if (command.type === 'load') this.arrive(command.model, SIZES[command.model] ?? 0);
    if (command.type === 'unload') this.leave(command.model);
    const back = command.type === 'restore' ? this.scene.restorable : [];
    for (const id of back) this.arrive(id, SIZES[id] ?? 0);
    this.publish();
    return ok({
      message:
        command.type === 'restore'
          ? `Brought back ${back.join(', ')}.`
          : 'router/writer-27b is loaded after 21 s.',
    });
  }

  happens(event: NewEvent): void {
    this.runtime.append({ ...event, at: new Date().toISOString() });
  }

  arrive(id: string, measuredBytes: number): void {
    change(this.scene, id, { status: 'loaded', busy: false, measuredBytes, loadProgress: null });
    this.scene.restorable = this.scene.restorable.filter((one) => one !== id);
  }

  leave(id: string): void {
    change(this.scene, id, { status: 'unloaded', busy: null, measuredBytes: null });
  }

  publish(): void {
    publish(this.runtime, this.scene, Date.now());
  }

  /** The runtime reads its card each second. */
  async passes(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1000) {
      if (this.scene.reading) this.publish();
      await vi.advanceTimersByTimeAsync(Math.min(1000, left));
    }
  }

  async until(clock: string): Promise<void> {
    const [hours = 0, minutes = 0] = clock.split(':').map(Number);
    const at = new Date();
    at.setUTCHours(hours, minutes, 0, 0);
    // Nothing happens in between: the clock may jump, as long as what waits comes to its end.
    await vi.advanceTimersByTimeAsync(60_000);
    vi.setSystemTime(Math.max(Date.now(), at.getTime()));
    if (this.scene.reading) this.publish();
    await vi.advanceTimersByTimeAsync(1000);
  }

  /** What a person sees now. */
  look(title: string, remark: string): void {
    const time = new Date().toISOString().slice(11, 16);
    const { electron } = this.set;
    const [tray] = electron.trays;
    if (tray === undefined) throw new Error('there is a tray');
    const picture = /([a-z]+)\.png$/.exec(tray.image)?.[1] ?? '';
    const top = electron
      .menuText()
      .split('\n')
      .filter((entry) => !entry.startsWith('    '));
    const news = electron.notifications.slice(this.#notified).map(({ options }) => {
      const lines = `${options.title}\n${options.body}`.split('\n');
      return [`> **${lines[0]}** (${options.urgency})`, '>', ...lines.slice(1).map((one) => `> ${one}`)].join(
        '\n',
      );
    });
    this.#notified = electron.notifications.length;
    this.pages.push(
      [
        `## ${time} ${title}`,
        remark,
        `Icon: **${picture}**. Tooltip:`,
        ['```', tray.tooltip, '```'].join('\n'),
        'Menu:',
        ['```', ...this.#sinceLast(top), '```'].join('\n'),
        news.length === 0 ? 'No notification.' : news.join('\n\n'),
      ].join('\n\n'),
    );
  }

  /** The end of the menu is left out where it has not changed. */
  #sinceLast(menu: readonly string[]): readonly string[] {
    const before = this.#menu;
    this.#menu = menu;
    let same = 0;
    while (same < menu.length && menu.at(-1 - same) === before.at(-1 - same)) same += 1;
    return same < 4 ? menu : [...menu.slice(0, menu.length - same), '… as before'];
  }

  wholeMenu(): void {
    this.pages.push(
      ['## The whole menu, in between', '', '```', this.set.electron.menuText(), '```'].join('\n'),
    );
  }

  get transcript(): string {
    return `${this.pages.map((page) => page.trimEnd()).join('\n\n')}\n`;
  }
}

describe('the scripted day', () => {
  const zone = process.env.TZ;
  beforeAll(() => {
    process.env.TZ = 'UTC';
  });
  afterAll(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
    vi.useRealTimers();
  });
  beforeEach(() => {
    vi.useFakeTimers({ now: Date.UTC(2026, 2, 4, 8, 58, 0), toFake: ['Date', 'setTimeout', 'clearTimeout'] });
  });

  it('reads well in the tray, its menu and the notifications, as the docs have it', async () => {
    const day = new Day();
    const { scene } = day;
    await day.start();
    await day.passes(6_000);
    expect(day.electron.windows).toHaveLength(0);
    day.look('Start', 'The session starts the app: a panel shows its icon, so that no window opens.');

    change(scene, CODER, { status: 'loading', loadProgress: 0.4, measuredBytes: 3 * GB, busy: null });
    await day.passes(12_000);
    day.look('A first model loads', 'An agent asked the router for coder-9b.');

    day.arrive(CODER, SIZES[CODER] ?? 0);
    day.happens(told.loaded('coder-9b', '9.1 s'));
    change(scene, WRITER, { status: 'loading', loadProgress: 0.7, measuredBytes: 11 * GB, busy: null });
    await day.passes(12_000);
    day.arrive(WRITER, SIZES[WRITER] ?? 0);
    day.happens(told.loaded('writer-27b', '21 s'));
    change(scene, WRITER, { busy: true });
    scene.lanes = [
      {
        backend: 'router',
        configured: true,
        path: '/gates/127.0.0.1_8080.lock',
        width: 1,
        held: true,
        holders: [
          {
            pid: 900,
            command: 'agent',
            session: 'writer',
            model: 'writer-27b',
            class: 'interactive',
            turn: 't-1',
            acquiredAt: new Date().toISOString(),
          },
        ],
        waiting: 0,
      },
    ];
    scene.agents = [
      sampleAgent({ agent: 'writer', source: 'gateway', model: WRITER, state: 'generating' }),
      sampleAgent({ agent: 'indexer', source: 'gateway', model: WRITER, state: 'waiting' }),
    ];
    await day.passes(46_000);
    day.look(
      'A second one, and a turn',
      'writer-27b is loaded too and answers the agent writer; both fit, so nothing leaves. indexer waits for its turn.',
    );
    day.wholeMenu();

    change(scene, WRITER, { busy: false });
    scene.lanes = [];
    scene.agents = [];
    await day.passes(8_000);
    day.look(
      'The turn is over',
      'The machine is kept awake for 20 s more, since one request often follows another.',
    );
    await day.until('11:20');
    scene.desktopBytes = 4.2 * GB;
    await day.passes(5_000);
    day.happens(told.threatened('3.5 GB'));
    await day.passes(3_000);
    day.look(
      'The floor is threatened',
      'A browser grows. The icon changes at once, the word comes after 5 s.',
    );

    day.leave(CODER);
    scene.restorable = [CODER];
    day.happens(
      told.evicted(
        'coder-9b',
        'it was idle for 12 min and 3.5 GB was free, 0.5 GB under the floor',
        7.4 * GB,
      ),
    );
    await day.passes(40_000);
    day.look('An eviction', 'The guards unload the model that was idle longest, and say so.');

    await day.until('12:30');
    day.set.electron.choose('Put big models to sleep', 'For 1 hour');
    await day.passes(10_000);
    day.look('Sleep', 'Quiet fans at lunch: `Put big models to sleep`, `For 1 hour`.');

    await day.until('13:30');
    scene.asleep = null;
    scene.desktopBytes = 2.6 * GB;
    day.happens(told.woke());
    day.set.electron.choose('Not loaded', 'writer-27b', 'Load');
    await day.passes(10_000);
    day.set.electron.choose('Bring back what left');
    await day.passes(10_000);
    day.look(
      'Wake',
      'The hour is over. writer-27b is loaded from the menu, and what had left is brought back.',
    );

    await day.until('15:00');
    scene.gameBytes = 2 * GB;
    await day.passes(2_000);
    day.leave(WRITER);
    scene.restorable = [WRITER];
    day.happens(
      told.evicted(
        'writer-27b',
        'it was idle for 89 min and 3.1 GB was free, 0.9 GB under the floor',
        16.9 * GB,
      ),
    );
    scene.gameBytes = 13 * GB;
    await day.passes(10_000);
    day.look('A game is started', 'It grows, and the model that was used longest ago makes room for it.');
    await day.until('16:30');
    scene.gameBytes = 0;
    await day.passes(30_000);
    day.look(
      'The game ends',
      'Its memory is free for a while, so what left for it is loaded again by itself.',
    );

    day.set.electron.choose('Settings', 'Unload big models before the machine sleeps');
    await day.until('18:00');
    scene.reading = false;
    day.set.electron.power('suspend');
    await day.passes(2_000);
    day.look('Suspend', 'Set beforehand: big models leave first, and logind waits for that.');

    await day.until('19:10');
    day.set.electron.power('resume');
    day.happens(told.resumed());
    await day.passes(1_000);
    day.look('Resume', 'What was read before the machine slept is not trusted, until the card is read anew.');
    scene.reading = true;
    await day.passes(7_000);
    day.look('The card is read anew', 'A few seconds later.');

    await day.until('19:30');
    scene.routerUp = false;
    day.happens(told.routerDown());
    await day.passes(10_000);
    day.look('The router is lost', 'A restart within six seconds would not have been told.');

    await day.until('19:34');
    scene.routerUp = true;
    day.happens(told.routerUp());
    await day.passes(10_000);
    day.look('The router is back', 'Its loss was told, so its return is.');

    await day.until('20:00');
    day.electron.emit('second-instance', {}, []);
    await day.passes(1_000);
    expect(day.electron.windows).toHaveLength(1);
    day.electron.closeWindow();
    await day.passes(6_000);
    day.look(
      'A second launch',
      'Whoever starts the app again gets its window; closed, it leaves the tray, which is said once.',
    );

    await day.until('22:30');
    day.set.electron.choose('Quit');
    expect(day.electron.calls.at(-1)).toBe('quit');
    expect(day.electron.quits()).toBe(false);
    await vi.advanceTimersByTimeAsync(100);
    expect(day.source.stops).toBe(1);
    expect(day.electron.calls.at(-1)).toBe('exit 0');
    day.pages.push(
      '## 22:30 Quit\n\nThe runtime ends first: lanes are given back, its own children end, servers that are not its own stay.',
    );

    expect(day.set.electron.trays).toHaveLength(1);
    if (process.env.LANDLORD_WRITE_DOCS === '1') writeFileSync(DOCUMENT, day.transcript);
    expect(existsSync(DOCUMENT)).toBe(true);
    expect(day.transcript).toBe(readFileSync(DOCUMENT, 'utf8'));
  });
});
