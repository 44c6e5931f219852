import { memo } from 'react';
import { AgentsCard } from './components/agents-card.tsx';
import { useAsked, useModel, useReplica } from './components/context.ts';
import { DeviceCard } from './components/device-card.tsx';
import { EventsCard } from './components/events-card.tsx';
import { Header, HeaderRefusals } from './components/header.tsx';
import { LaneCard } from './components/lane-card.tsx';
import { ModelsCard } from './components/models-card.tsx';
import { Refusal } from './components/refusal.tsx';
import { strings } from './strings.ts';
import { timeText } from './view/figures.ts';
import { type Page, pageOf } from './view/page.ts';

const words = strings.connection;

export function App() {
  const page = useReplica(({ state, events }) => (state === null ? null : pageOf(state, events)));
  const kind = useReplica(({ connection }) => connection.kind);
  return (
    <main>
      <Header page={page} />
      <HeaderRefusals />
      {kind === 'lost' && page !== null && <Lost />}
      {kind === 'locked' && (
        <p className="notice warning">
          {words.lockedWhy} {words.lockedDetail} <code>{words.lockedCommand}</code>
        </p>
      )}
      <div className={kind === 'lost' || kind === 'locked' ? 'content old' : 'content'}>
        {page === null ? <p className="card empty">{words.waiting}</p> : <Content page={page} />}
      </div>
    </main>
  );
}

/** A browser's page can only wait; the app can run what it has lost. */
function Lost() {
  const { host } = useModel().actions;
  const pending = useAsked('host')?.kind === 'pending';
  if (host === null) return <p className="notice warning">{words.lostDetail}</p>;
  return (
    <>
      <div className="notice error offer">
        <p>{words.lostInApp}</p>
        <button type="button" aria-busy={pending} onClick={host}>
          {words.host}
        </button>
      </div>
      <Refusal about="host" />
    </>
  );
}

const Content = memo(function Content({ page }: { page: Page }) {
  const { guardsPausedUntil: until } = page;
  return (
    <>
      {page.guards === 'paused' && (
        <p className="notice warning">
          {until === null ? strings.guards.paused : strings.guards.pausedUntil(timeText(until, Date.now()))}
        </p>
      )}
      {page.notices.map((notice) => (
        <p className={`notice ${notice.severity}`} key={notice.text}>
          {notice.text}
        </p>
      ))}
      {page.devices.map((card) => (
        <DeviceCard key={card.id} card={card} />
      ))}
      {page.agents.length > 0 && <AgentsCard slots={page.agents} />}
      <div className="two">
        <div>
          <ModelsCard card={page.models} />
          {page.lanes.map((card) => (
            <LaneCard key={card.backend} card={card} />
          ))}
        </div>
        <EventsCard card={page.events} />
      </div>
    </>
  );
});
