import { memo } from 'react';
import { strings } from '../strings.ts';
import { timeText } from '../view/figures.ts';
import type { Page } from '../view/page.ts';
import { pageAt, placeOf } from '../view/place.ts';
import { Ago } from './ago.tsx';
import { useAsked, useModel, useReplica } from './context.ts';
import { Refusal } from './refusal.tsx';
import { useHash } from './use-place.ts';

export const Header = memo(function Header({ page }: { page: Page | null }) {
  return (
    <header>
      <h1>{strings.appName}</h1>
      <ConnectionState />
      <Nav />
      <span className="spacer" />
      {page !== null && (
        <>
          <GuardsControl guards={page.guards} until={page.guardsPausedUntil} />
          <SleepButton asleep={page.asleep} />
        </>
      )}
    </header>
  );
});

const LINKS = [
  { page: 'now', href: '#now', label: strings.nav.now },
  { page: 'history', href: '#history', label: strings.nav.history },
  { page: 'events', href: '#events', label: strings.nav.events },
  { page: 'settings', href: '#settings', label: strings.nav.settings },
] as const;

const Nav = memo(function Nav() {
  const here = pageAt(placeOf(useHash()));
  return (
    <nav aria-label={strings.nav.name}>
      {LINKS.map(({ page, href, label }) => (
        <a key={page} href={href} aria-current={here === page ? 'page' : undefined}>
          {label}
        </a>
      ))}
    </nav>
  );
});

function ConnectionState() {
  const connection = useReplica((replica) => replica.connection);
  return (
    <span className={`connection ${connection.kind}`}>
      <i aria-hidden="true" />
      {/* Spoken once when it changes; the seconds beside it are for the eye. */}
      <span role="status">{strings.connection[connection.kind]}</span>
      {'sinceMs' in connection && (
        <span aria-hidden="true">
          <Ago atMs={connection.sinceMs} write={strings.connection.ago} />
        </span>
      )}
    </span>
  );
}

const MODES = [
  { mode: 'on', state: 'on', label: strings.guards.on, hint: strings.guards.onHint },
  { mode: 'observe', state: 'observe', label: strings.guards.observe, hint: strings.guards.observeHint },
  { mode: 'pause', state: 'paused', label: strings.guards.pause, hint: strings.guards.pauseHint },
] as const;

const GuardsControl = memo(function GuardsControl({
  guards,
  until,
}: {
  guards: Page['guards'];
  until: string | null;
}) {
  const { actions } = useModel();
  const pending = useAsked('guards')?.kind === 'pending';
  return (
    <fieldset className="choice" aria-busy={pending}>
      <legend>{strings.guards.legend}</legend>
      {MODES.map(({ mode, state, label, hint }) => (
        <label
          key={mode}
          title={
            state === 'paused' && until !== null
              ? strings.guards.pausedUntil(timeText(until, Date.now()))
              : hint
          }
        >
          <input
            type="radio"
            name="guards"
            checked={guards === state}
            onChange={() => actions.guards(mode)}
          />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  );
});

const SleepButton = memo(function SleepButton({ asleep }: { asleep: Page['asleep'] }) {
  const { actions } = useModel();
  const pending = useAsked('sleep')?.kind === 'pending';
  const text =
    asleep === null
      ? strings.sleep.awake
      : asleep.until === null
        ? strings.sleep.asleep
        : strings.sleep.asleepUntil(timeText(asleep.until, Date.now()));
  return (
    <button
      type="button"
      aria-pressed={asleep !== null}
      aria-busy={pending}
      title={asleep === null ? strings.sleep.awakeHint : strings.sleep.asleepHint}
      onClick={() => actions.sleep(asleep === null)}
    >
      {text}
    </button>
  );
});

/** Refusals of what the header asked for. */
export function HeaderRefusals() {
  return (
    <>
      <Refusal about="guards" />
      <Refusal about="sleep" />
    </>
  );
}
