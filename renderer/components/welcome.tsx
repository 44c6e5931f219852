import { memo, useState } from 'react';
import { formatDuration } from '../../shared/format.ts';
import type { GuardsMode } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { shortName } from '../view/figures.ts';
import { useModel, useTimed } from './context.ts';
import { useAnswer } from './use-answer.ts';

const words = strings.start;
/** A day says what a usual day is. */
const LEAST_MS = 24 * 3_600_000;
const EVERY_MS = 600_000;
const KEY = 'landlord.guide';

/** The guide's offer before the first config, and after a day of observing what the guards would have done. */
export const Welcome = memo(function Welcome({ guards }: { guards: GuardsMode }) {
  const { actions } = useModel();
  const { value } = useAnswer('observation', {}, EVERY_MS);
  const [later, setLater] = useState(isPutOff);
  const observed = useTimed((nowMs) =>
    value?.sinceMs == null ? 0 : Math.floor((nowMs - value.sinceMs) / 3_600_000) * 3_600_000,
  );
  if (value === null) return null;
  if (value.firstRun && !later)
    return (
      <div className="notice info offer">
        <p>{words.offer}</p>
        <span className="buttons">
          <a className="button" href="#start">
            {words.begin}
          </a>
          <button
            type="button"
            onClick={() => {
              putOff();
              setLater(true);
            }}
          >
            {words.later}
          </button>
        </span>
      </div>
    );
  if (guards !== 'observe' || observed < LEAST_MS || value.stalls === 0) return null;
  const models = value.models.slice(0, 3).map(shortName).join(', ');
  return (
    <div className="notice info offer">
      <p>{words.observed(formatDuration(observed), words.stalls(value.stalls), models)}</p>
      <button type="button" onClick={() => actions.guards('on')}>
        {words.turnOn}
      </button>
    </div>
  );
});

/** Kept in the browser: it is no setting of the machine. */
function isPutOff(): boolean {
  try {
    return localStorage.getItem(KEY) === 'later';
  } catch {
    return false;
  }
}

function putOff(): void {
  try {
    localStorage.setItem(KEY, 'later');
  } catch {
    // A browser that keeps nothing shows the offer again.
  }
}
