import { lazy, memo, Suspense } from 'react';
import { AgentsCard } from './components/agents-card.tsx';
import { useAsked, useModel, useReplica } from './components/context.ts';
import { DeviceCard } from './components/device-card.tsx';
import { EventsCard } from './components/events-card.tsx';
import { Header, HeaderRefusals } from './components/header.tsx';
import { LanesCard } from './components/lanes-card.tsx';
import { ModelsCard } from './components/models-card.tsx';
import { OfferCard } from './components/offer-card.tsx';
import { Refusal } from './components/refusal.tsx';
import { useHash } from './components/use-place.ts';
import { Welcome } from './components/welcome.tsx';
import { strings } from './strings.ts';
import { timeText } from './view/figures.ts';
import { type Page, pageOf } from './view/page.ts';
import { pageAt, placeOf } from './view/place.ts';

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
        {page === null ? <p className="card empty">{words.waiting}</p> : <Shown page={page} />}
      </div>
    </main>
  );
}

/** Read only where they are opened: the first glance need not wait for a chart. */
const HistoryPage = lazy(() =>
  import('./components/history-page.tsx').then((module) => ({ default: module.HistoryPage })),
);

const EventsPage = lazy(() =>
  import('./components/events-page.tsx').then((module) => ({ default: module.EventsPage })),
);
const SettingsPage = lazy(() =>
  import('./components/settings-page.tsx').then((module) => ({ default: module.SettingsPage })),
);
const StartPage = lazy(() =>
  import('./components/start-page.tsx').then((module) => ({ default: module.StartPage })),
);

function Shown({ page }: { page: Page }) {
  const place = placeOf(useHash());
  switch (pageAt(place)) {
    case 'history':
      return (
        <Suspense fallback={<p className="card empty">{strings.history.waiting}</p>}>
          <HistoryPage atMs={place?.kind === 'page' ? place.atMs : null} />
        </Suspense>
      );
    case 'events':
      return (
        <Suspense fallback={<p className="card empty">{strings.eventsPage.waiting}</p>}>
          <EventsPage />
        </Suspense>
      );
    case 'settings':
      return (
        <Suspense fallback={<p className="card empty">{strings.settings.waiting}</p>}>
          <SettingsPage />
        </Suspense>
      );
    case 'start':
      return (
        <Suspense fallback={<p className="card empty">{strings.settings.waiting}</p>}>
          <StartPage />
        </Suspense>
      );
    default:
      return <Content page={page} />;
  }
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
      <Welcome guards={page.guards} />
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
      {page.offers.map((offer) => (
        <OfferCard key={offer.id} offer={offer} />
      ))}
      {page.devices.map((card) => (
        <DeviceCard key={card.id} card={card} />
      ))}
      {page.lanes.length > 0 && <LanesCard lanes={page.lanes} />}
      {page.agents.length > 0 && <AgentsCard slots={page.agents} />}
      <div className="two">
        <ModelsCard card={page.models} />
        <EventsCard card={page.events} />
      </div>
    </>
  );
});
