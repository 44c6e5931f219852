import { memo, useEffect, useState } from 'react';
import { strings } from '../strings.ts';
import { contextHow, type PlanView, planView } from '../view/plan.ts';
import { useModel, useReplica } from './context.ts';
import { useAnswer } from './use-answer.ts';

const words = strings.plan;

/** What a load would do, shown before it is done; asked anew now and then, since memory moves. */
export const PlanPanel = memo(function PlanPanel({
  model,
  name,
  close,
}: {
  model: string;
  name: string;
  close: () => void;
}) {
  const { actions } = useModel();
  const { value, error, again } = useAnswer('plan', { model }, 5000);
  const plan = value === null ? null : planView(value);
  return (
    <section
      className={`plan ${plan?.tone ?? 'calm'}`}
      aria-label={words.askName(name)}
      aria-busy={plan === null && error === null}
    >
      {plan === null && error === null && <p className="facts">{words.working}</p>}
      {plan === null && error !== null && <p>{error.message}</p>}
      {plan !== null && (
        <>
          <p className="verdict" role="status">
            {plan.sentence}
          </p>
          {plan.denial !== null && <p>{plan.denial}</p>}
          <p className="facts">
            {plan.facts.map((fact) => (
              <span key={fact}>{fact}</span>
            ))}
          </p>
          <Contexts plan={plan} model={model} />
          <Risks risks={plan.risks} />
          {plan.offers === 'anyway' && <Always model={model} always={plan.alwaysAnyway} changed={again} />}
        </>
      )}
      <div className="buttons">
        {plan?.offers === 'load' && (
          <button
            type="button"
            onClick={() => {
              actions.load(model, false);
              close();
            }}
          >
            {words.load}
          </button>
        )}
        {plan?.offers === 'anyway' && (
          <button
            type="button"
            className="danger"
            aria-label={words.anywayName(name)}
            onClick={() => {
              actions.load(model, true);
              close();
            }}
          >
            {words.anyway}
          </button>
        )}
        <button type="button" onClick={close}>
          {words.close}
        </button>
      </div>
    </section>
  );
});

function Contexts({ plan, model }: { plan: PlanView; model: string }) {
  const kind = useReplica(({ state }) => {
    const backend = state?.models.find(({ id }) => id === model)?.backend;
    return state?.backends.find(({ name }) => name === backend)?.kind ?? '';
  });
  if (plan.contexts.length === 0) return null;
  const how = contextHow(kind);
  return (
    <>
      <dl className="contexts" aria-label={words.contexts}>
        {plan.contexts.map((context) => (
          <div
            key={context.key}
            className={`${context.fits ? '' : 'dimmed'}${context.present ? ' present' : ''}`}
            title={context.name}
          >
            <dt>
              {context.tokens}
              {context.present && <span className="spoken"> {words.present}</span>}
            </dt>
            <dd>
              {context.bytes}
              {!context.fits && <span className="spoken">, {words.fits.denied}</span>}
            </dd>
          </div>
        ))}
      </dl>
      {how !== null && plan.contexts.length > 1 && <p className="facts">{how}</p>}
    </>
  );
}

function Risks({ risks }: { risks: readonly string[] }) {
  if (risks.length === 0) return null;
  return (
    <>
      <p className="risks-title">{words.risks}</p>
      <ul className="risks">
        {risks.map((risk) => (
          <li key={risk}>{risk}</li>
        ))}
      </ul>
    </>
  );
}

function Always({ model, always, changed }: { model: string; always: boolean; changed: () => void }) {
  const { ask } = useModel();
  /** What was just chosen, until the runtime has said so itself. */
  const [chosen, setChosen] = useState(always);
  useEffect(() => setChosen(always), [always]);
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={chosen}
        onChange={(event) => {
          setChosen(event.target.checked);
          void ask('loadAnyway', { model, always: event.target.checked }).then(changed);
        }}
      />
      {words.always}
    </label>
  );
}

/** Beside a denial: what a load by force may bring, and whether it is to be remembered. */
export const AnywayFacts = memo(function AnywayFacts({ model }: { model: string }) {
  const { value, again } = useAnswer('plan', { model });
  if (value === null) return null;
  return (
    <>
      <Risks risks={value.risks} />
      <Always model={model} always={value.alwaysAnyway} changed={again} />
    </>
  );
});
