import { memo, useEffect, useRef } from 'react';
import type { OfferState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { useAsked, useModel } from './context.ts';
import { Refusal } from './refusal.tsx';

const words = strings.offers;

/** What only a person does: said, offered, and asked once more before it is done. */
export const OfferCard = memo(function OfferCard({ offer }: { offer: OfferState }) {
  const { actions } = useModel();
  const about = `offer ${offer.id}`;
  const asked = useAsked(about);
  return (
    <>
      <div className="notice warning offer">
        <p>{offer.text}</p>
        {asked?.kind !== 'asking' && (
          <button
            type="button"
            aria-busy={asked?.kind === 'pending'}
            disabled={asked?.kind === 'pending'}
            onClick={() => actions.offer(offer.id)}
          >
            {offer.label}
          </button>
        )}
      </div>
      {asked?.kind === 'asking' && <Question offer={offer} about={about} />}
      <Refusal about={about} />
    </>
  );
});

/** Safe by default: the focus is on leaving it, and Escape leaves it too. */
function Question({ offer, about }: { offer: OfferState; about: string }) {
  const { actions } = useModel();
  const leave = useRef<HTMLButtonElement>(null);
  useEffect(() => leave.current?.focus(), []);
  return (
    <div
      className="refusal"
      role="alertdialog"
      aria-label={offer.label}
      onKeyDown={(event) => {
        if (event.key === 'Escape') actions.dismiss(about);
      }}
    >
      <p>{offer.question}</p>
      <div className="buttons">
        <button type="button" ref={leave} onClick={() => actions.dismiss(about)}>
          {words.leave}
        </button>
        <button type="button" className="danger" onClick={() => actions.accept(offer.id)}>
          {offer.label}
        </button>
      </div>
    </div>
  );
}
