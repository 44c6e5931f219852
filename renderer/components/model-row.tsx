import { memo, useCallback, useState } from 'react';
import { strings } from '../strings.ts';
import { timeText } from '../view/figures.ts';
import type { ModelAction, ModelRow as Row } from '../view/models.ts';
import { Ago, LeavesIn } from './ago.tsx';
import { useAsked, useModel, useTimed } from './context.ts';
import { PlanPanel } from './plan-panel.tsx';
import { Question } from './question.tsx';
import { Refusal } from './refusal.tsx';

const words = strings.models;

const BUTTONS: Readonly<Record<ModelAction, { label: string; name: (model: string) => string }>> = {
  load: { label: words.load, name: words.loadName },
  cancel: { label: words.cancel, name: words.cancelName },
  unload: { label: words.unload, name: words.unloadName },
};

export const ModelRow = memo(function ModelRow({ row }: { row: Row }) {
  const { actions } = useModel();
  const asked = useAsked(row.id);
  const [planning, setPlanning] = useState(false);
  const close = useCallback(() => setPlanning(false), []);
  // While a load is under way its button has become Cancel, and that must work.
  const waits = asked?.kind === 'pending' && asked.what === row.action;
  return (
    <li className="model" data-model={row.id}>
      <div className="line">
        <i className={`lamp ${row.lamp}`} aria-hidden="true" />
        <div className="what">
          <p>
            <strong>
              <bdi>{row.name}</bdi>
            </strong>{' '}
            <span className={`status ${row.lamp}`}>{row.status}</span>
          </p>
          <p className="facts">
            {row.backend !== null && <span>{row.backend}</span>}
            {row.facts.map((fact) => (
              <span key={fact}>{fact}</span>
            ))}
            {row.lastUsedAtMs !== null && (
              <span>
                <Ago atMs={row.lastUsedAtMs} write={words.usedAgo} />
              </span>
            )}
            {row.leavesAtMs !== null && (
              <span>
                <LeavesIn atMs={row.leavesAtMs} />
              </span>
            )}
            {row.stays && <span>{words.stays}</span>}
            {row.action === 'load' && (
              <span>
                <button
                  type="button"
                  className="link"
                  aria-label={strings.plan.askName(row.name)}
                  aria-expanded={planning}
                  onClick={() => setPlanning(!planning)}
                >
                  {strings.plan.ask}
                </button>
              </span>
            )}
          </p>
          {row.evicted !== null && <Evicted evicted={row.evicted} />}
        </div>
        <button
          type="button"
          className="pin"
          aria-pressed={row.pinned}
          aria-label={row.pinned ? words.unpinName(row.name) : words.pinName(row.name)}
          title={row.pinned ? words.unpinName(row.name) : words.pinName(row.name)}
          onClick={() => actions.pin(row.id, !row.pinned)}
        >
          <PinMark />
        </button>
        {row.action === null ? (
          <span className="no-action" />
        ) : (
          <button
            type="button"
            className="act"
            aria-label={BUTTONS[row.action].name(row.name)}
            aria-busy={waits}
            disabled={waits}
            onClick={() => actions.act(row)}
          >
            {BUTTONS[row.action].label}
          </button>
        )}
      </div>
      {planning && <PlanPanel model={row.id} name={row.name} close={close} />}
      {asked?.kind === 'asking' && <BusyQuestion row={row} />}
      <Refusal about={row.id} />
      <Refusal about={`pin ${row.id}`} />
    </li>
  );
});

const Evicted = memo(function Evicted({ evicted }: { evicted: NonNullable<Row['evicted']> }) {
  const when = useTimed((nowMs) => timeText(evicted.at, nowMs));
  return <p className="facts evicted">{words.evicted(when, evicted.reason)}</p>;
});

function BusyQuestion({ row }: { row: Row }) {
  const { actions } = useModel();
  return (
    <Question
      name={words.unloadName(row.name)}
      text={words.busyAsk(row.name)}
      no={{ label: words.keep, act: () => actions.dismiss(row.id) }}
      yes={{ label: words.unloadAnyway, act: () => actions.unload(row.id, true) }}
    />
  );
}

function PinMark() {
  return (
    <svg viewBox="0 0 16 16" width="15" height="15" aria-hidden="true">
      <path d="M5.5 1.5h5l-.6 4.6 2.1 2.4v1.3H8.6V15h-1.2V9.8H4V8.5l2.1-2.4z" />
    </svg>
  );
}
