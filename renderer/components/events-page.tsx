import * as ToggleGroup from '@radix-ui/react-toggle-group';
import { memo, useDeferredValue, useEffect, useMemo, useState } from 'react';
import type { LandlordEvent } from '../../shared/events.ts';
import { mergeEvents } from '../store.ts';
import { strings } from '../strings.ts';
import { type EventGroup, type LogRow, logRow, matching, reportText } from '../view/event-log.ts';
import { exactText, momentText } from '../view/times.ts';
import { useModel, useReplica } from './context.ts';

const words = strings.eventsPage;
/** As many as the runtime gives at once. */
const MOST = 5000;
const FIRST_SHOWN = 60;
const MORE = 200;

const GROUPS: readonly EventGroup[] = ['guards', 'memory', 'models', 'turns', 'system'];

export function EventsPage() {
  const { readEvents, replica } = useModel();
  const live = useReplica(({ events }) => events);
  const [older, setOlder] = useState<readonly LandlordEvent[] | null>(null);
  const [groups, setGroups] = useState<readonly EventGroup[]>([]);
  const [search, setSearch] = useState('');
  const [shown, setShown] = useState(FIRST_SHOWN);
  const looked = useDeferredValue(search);
  useEffect(() => {
    let gone = false;
    void readEvents(MOST).then((read) => {
      if (!gone) setOlder(Array.isArray(read) ? read : []);
    });
    return () => {
      gone = true;
    };
  }, [readEvents]);
  const all = useMemo(() => mergeEvents(older ?? [], live, MOST), [older, live]);
  const found = useMemo(() => matching(all, new Set(groups), looked), [all, groups, looked]);
  const rows = useMemo(() => found.slice(0, shown).map(logRow), [found, shown]);
  const left = found.length - rows.length;
  return (
    <section className="card log" aria-labelledby="log-title">
      <div className="title">
        <h2 id="log-title">{words.title}</h2>
        <p className="facts" role="status">
          {words.count(found.length.toLocaleString(), all.length.toLocaleString())}
        </p>
      </div>
      <div className="tools left">
        <input
          type="search"
          aria-label={words.search}
          placeholder={words.search}
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
            setShown(FIRST_SHOWN);
          }}
        />
        <ToggleGroup.Root
          type="multiple"
          className="toggles"
          aria-label={words.filter}
          value={[...groups]}
          onValueChange={(chosen) => {
            setGroups(GROUPS.filter((group) => chosen.includes(group)));
            setShown(FIRST_SHOWN);
          }}
        >
          {GROUPS.map((group) => (
            <ToggleGroup.Item key={group} value={group} className="toggle">
              {words.groups[group]}
            </ToggleGroup.Item>
          ))}
        </ToggleGroup.Root>
        <CopyButton text={() => reportText(found.toReversed(), replica.getState().state)} />
      </div>
      {older === null && <p className="empty">{words.waiting}</p>}
      {older !== null && found.length === 0 && (
        <p className="empty">{all.length === 0 ? words.noneAtAll : words.none}</p>
      )}
      <ol className="rows">
        {rows.map((row) => (
          <LogEntry key={row.id} row={row} />
        ))}
      </ol>
      {left > 0 && (
        <button type="button" className="more" onClick={() => setShown(shown + MORE)}>
          {words.more(Math.min(left, MORE).toLocaleString())}
        </button>
      )}
    </section>
  );
}

const LogEntry = memo(function LogEntry({ row }: { row: LogRow }) {
  const time = momentText(row.atMs, Date.now());
  return (
    <li className={`event sev-${row.severity}`} data-event={row.id}>
      <time dateTime={row.at} title={exactText(row.atMs)}>
        {time}
      </time>
      <div>
        <p>
          <span className="kind">{row.kind}</span> {row.reason}
        </p>
        <p className="facts">
          {row.model !== null && <span>{row.model}</span>}
          {row.figures.map(({ name, text }) => (
            <span key={name}>
              {name} {text}
            </span>
          ))}
          <span>
            <a href={`#history-${row.atMs}`} aria-label={words.inChartName(time)}>
              {words.inChart}
            </a>
          </span>
        </p>
      </div>
    </li>
  );
});

function CopyButton({ text }: { text: () => string }) {
  const [state, setState] = useState<'idle' | 'copied' | { readonly byHand: string }>('idle');
  const copy = async (): Promise<void> => {
    const report = text();
    try {
      await navigator.clipboard.writeText(report);
      setState('copied');
    } catch {
      setState({ byHand: report });
    }
  };
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        {words.copy}
      </button>
      <span role="status" className="saved">
        {state === 'copied' && words.copied}
      </span>
      {typeof state === 'object' && (
        <div className="by-hand">
          <p>{words.copyFailed}</p>
          <textarea readOnly rows={8} aria-label={words.copyText} value={state.byHand} />
        </div>
      )}
    </>
  );
}
