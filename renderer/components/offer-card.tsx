import { memo } from 'react';
import type { OfferState } from '../../shared/state.ts';
import { strings } from '../strings.ts';
import { useAsked, useModel } from './context.ts';
import { Question } from './question.tsx';
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
      {asked?.kind === 'asking' && (
        <Question
          name={offer.label}
          text={offer.question}
          no={{ label: words.leave, act: () => actions.dismiss(about) }}
          yes={{ label: offer.label, act: () => actions.accept(offer.id) }}
        />
      )}
      <Refusal about={about} />
    </>
  );
});
