import { memo, useState } from 'react';
import { strings } from '../strings.ts';
import type { AgentSlot as Slot } from '../view/agents.ts';
import { Ago } from './ago.tsx';
import { useAsked, useModel } from './context.ts';
import { Question } from './question.tsx';
import { Refusal } from './refusal.tsx';
import { useJob } from './use-job.ts';

const words = strings.agents;

export const AgentsCard = memo(function AgentsCard({ slots }: { slots: readonly Slot[] }) {
  return (
    <section className="card agents" aria-labelledby="agents-title">
      <h2 id="agents-title">{words.title}</h2>
      <ul className="slots">
        {slots.map((slot) => (
          <AgentSlot key={slot.key} slot={slot} />
        ))}
      </ul>
    </section>
  );
});

const AgentSlot = memo(function AgentSlot({ slot }: { slot: Slot }) {
  const [asking, setAsking] = useState(false);
  return (
    <li className={`slot ${slot.lamp}`} data-agent={slot.key}>
      <p className="who">
        <i className={`lamp ${slot.lamp}`} aria-hidden="true" />
        <span>
          <strong>
            <bdi>{slot.name}</bdi>
          </strong>{' '}
          {slot.state}
        </span>
        {slot.sinceMs !== null && (
          <span className="age">
            <Ago atMs={slot.sinceMs} write={words.since} />
          </span>
        )}
      </p>
      {slot.rate !== null && (
        <p className={slot.live ? 'rate' : 'rate past'}>
          {slot.live ? words.rate(slot.rate) : words.lastRate(slot.rate)}
        </p>
      )}
      <p className="facts">
        {slot.facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
        {slot.laneSinceMs !== null && (
          <span>
            <Ago atMs={slot.laneSinceMs} write={words.laneFor} />
          </span>
        )}
        {slot.canPutAway && (
          <span>
            <PutAway slot={slot} />
          </span>
        )}
        {slot.engineName !== null && (
          <span>
            <button
              type="button"
              className="link"
              aria-label={words.forgetName(slot.name)}
              title={words.forgetName(slot.name)}
              aria-expanded={asking}
              onClick={() => setAsking(true)}
            >
              {words.forget}
            </button>
          </span>
        )}
      </p>
      {asking && slot.engineName !== null && (
        <ForgetQuestion slot={slot} engineName={slot.engineName} close={() => setAsking(false)} />
      )}
      <Refusal about={slot.key} />
    </li>
  );
});

/** The runtime knows an agent by the same id as the page. */
const PutAway = memo(function PutAway({ slot }: { slot: Slot }) {
  const { actions } = useModel();
  const pending = useAsked(slot.key)?.kind === 'pending';
  return (
    <button
      type="button"
      className="link"
      aria-label={words.putAwayName(slot.name)}
      title={words.putAwayName(slot.name)}
      aria-busy={pending}
      disabled={pending}
      onClick={() => actions.unload(slot.key, false)}
    >
      {words.putAway}
    </button>
  );
});

function ForgetQuestion({ slot, engineName, close }: { slot: Slot; engineName: string; close: () => void }) {
  const { ask } = useModel();
  const [job, run] = useJob();
  return (
    <Question
      name={words.forgetName(slot.name)}
      text={job.kind === 'failed' ? job.message : words.forgetAsk(slot.name, slot.tokens)}
      no={{ label: words.keep, act: close }}
      yes={{
        label: words.forgetYes,
        act: () => run(() => ask('forgetAgent', { agent: engineName })),
        running: job.kind === 'running',
      }}
    />
  );
}
