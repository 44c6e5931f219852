import { describe, expect, it } from 'vitest';
import { createTeller, deflectionNews, failOpenNews } from '../../../electron/core/gate/news.ts';
import type { ReportedEvent } from '../../../electron/core/runtime-api.ts';
import { gateIn, tempFolder, URL_8080 } from '../../support/gate.ts';

function event(change: Partial<ReportedEvent>): ReportedEvent {
  return {
    kind: 'deflected',
    reason: 'busy',
    lane: null,
    session: null,
    model: null,
    numbers: {},
    ...change,
  };
}

describe('telling the runtime', () => {
  it('never throws and never waits: whoever tells goes on first', async () => {
    const sent: string[] = [];
    const teller = createTeller(
      async ({ reason }) => {
        sent.push(reason);
        throw new Error('nobody is there');
      },
      () => false,
    );
    teller.tell(event({ reason: 'one' }));
    await Promise.resolve();
    expect(sent).toEqual([]);
    await teller.settled();
    expect(sent).toEqual(['one']);
    await teller.settled();
  });

  it('is one event for what says the same while it waits, with how often', async () => {
    const sent: ReportedEvent[] = [];
    const teller = createTeller(
      async (one) => {
        sent.push(one);
      },
      () => false,
    );
    for (const session of ['a', 'b', 'a', 'a']) teller.tell(event({ session, numbers: { waitedMs: 1 } }));
    await teller.settled();
    expect(sent.map(({ session, numbers }) => [session, numbers])).toEqual([
      ['a', { waitedMs: 1, times: 3 }],
      ['b', { waitedMs: 1 }],
    ]);
  });

  it('keeps no more than some while a runtime takes its time', async () => {
    let sent = 0;
    const teller = createTeller(
      async () => {
        sent += 1;
      },
      () => false,
    );
    for (let session = 0; session < 1000; session += 1) teller.tell(event({ session: `${session}` }));
    await teller.settled();
    expect(sent).toBe(32);
  });

  it('is off where the environment says so', async () => {
    let sent = 0;
    const teller = createTeller(
      async () => {
        sent += 1;
      },
      () => true,
    );
    teller.tell(event({}));
    await teller.settled();
    expect(sent).toBe(0);
  });

  it('sends no text that is longer than the runtime takes', () => {
    const long = 'x'.repeat(5000);
    const report = { reason: 'internal', lane: null, path: null, message: long, errno: null } as const;
    const { reason, session, model } = failOpenNews(report, { session: long, model: '' });
    expect([reason.length, session?.length, model]).toEqual([1000, 200, null]);
  });
});

describe('a turn', () => {
  it('that is granted is nobody’s news', () => {
    using folder = tempFolder();
    const { gate, told } = gateIn(folder.path);
    using turn = gate.tryTurn(URL_8080);
    expect(turn.kind).toBe('held');
    expect(told).toEqual([]);
  });

  it('that is deflected is told once, and not where its program says no', () => {
    using folder = tempFolder();
    const { gate, told } = gateIn(folder.path);
    using _turn = gate.tryTurn(URL_8080, { session: 'a' });
    gate.tryTurn(URL_8080, { session: 'b', reports: false });
    const busy = gate.tryTurn(URL_8080, { session: 'b' });
    if (busy.kind !== 'busy') throw new Error(busy.kind);
    expect(told).toEqual([deflectionNews(busy, { session: 'b' })]);
    expect(told[0]).toMatchObject({ kind: 'deflected', lane: '127.0.0.1_8080', session: 'b' });
  });

  it('without its lane is told once a kind of trouble, as its own program is', () => {
    using folder = tempFolder();
    const { gate, told } = gateIn(`${folder.path}/../${'x'.repeat(300)}`);
    for (let turn = 0; turn < 3; turn += 1) gate.tryTurn(URL_8080, { onReport: () => undefined });
    expect(told.map(({ kind }) => kind)).toEqual(['fail_open']);
  });
});
