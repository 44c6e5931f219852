import { memo } from 'react';
import { strings } from '../strings.ts';
import { numberPairs } from '../view/numbers.ts';
import { useAsked, useModel } from './context.ts';
import { AnywayFacts } from './plan-panel.tsx';

/** Why something asked for was not done, with its figures, and what would do it all the same. */
export const Refusal = memo(function Refusal({ about }: { about: string }) {
  const { actions } = useModel();
  const asked = useAsked(about);
  if (asked?.kind !== 'refused') return null;
  const { force } = asked;
  const pairs = numberPairs(asked.numbers);
  return (
    <div className="refusal" role="alert">
      <p>{asked.message}</p>
      {pairs.length > 0 && (
        <dl>
          {pairs.map(({ name, text }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text}</dd>
            </div>
          ))}
        </dl>
      )}
      {force === 'load' && <AnywayFacts model={about} />}
      <div className="buttons">
        {force === 'load' && (
          <button
            type="button"
            title={strings.models.loadAnywayHint}
            onClick={() => actions.load(about, true)}
          >
            {strings.models.loadAnyway}
          </button>
        )}
        {force === 'unload' && (
          <button type="button" className="danger" onClick={() => actions.unload(about, true)}>
            {strings.models.unloadAnyway}
          </button>
        )}
        <button type="button" onClick={() => actions.dismiss(about)}>
          {strings.models.dismiss}
        </button>
      </div>
    </div>
  );
});
