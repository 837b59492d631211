// The estimated cost of expressions, which the factor by which it exceeds a budget shows.
import { definitionOf, tryDefinition } from './definitions.mjs';
import { customFields, schema } from './fields.mjs';
import { createGenerator } from './generator.mjs';
import { causesByIndex } from './outcomes.mjs';

const perDefinition = 8;
/** Lengths of three nested lists around the object. The factor is shown up to 100. */
const lengths = [3, 10, 35, 130, 470, 1_800, 6_700, 25_000];
const exceeded = /estimated rule cost exceeds budget by factor of (?:more than )?\S+/;

function nested(spec, maxItems) {
  let items = spec;
  for (let depth = 0; depth < 3; depth++) items = { type: 'array', maxItems, items };
  return { type: 'object', properties: { lists: items } };
}

/** A round that compares estimates of some expressions. */
export function costRounds({ random, outcomes }) {
  const generator = createGenerator({ random, fields: customFields });

  async function estimates(number) {
    let rest = generator.several(perDefinition).map(({ text }) => text);
    for (const maxItems of lengths) {
      if (rest.length === 0) return;
      const rules = rest.map((text) => ({ rule: `dyn(${text}) != dyn("zz")` }));
      const spec = nested({ ...schema, 'x-kubernetes-validations': rules }, maxItems);
      const body = definitionOf({ group: `cel${number}.example.com`, spec });
      const answers = await tryDefinition(outcomes, body);
      const causes = answers.map((answer) =>
        causesByIndex(answer, /x-kubernetes-validations\[(\d+)\]/),
      );
      rest = rest.filter((expression, at) => {
        const said = causes.map((found) => found.get(at));
        if (said.every((message) => message === undefined)) return true;
        const factors = said.map((message = 'within the budget') => {
          const factor = exceeded.exec(message)?.[0];
          return factor === undefined ? message : `${maxItems}: ${factor}`;
        });
        outcomes.compare({ subject: 'estimates', expression, outcomes: factors });
        return false;
      });
    }
  }
  return { estimates };
}
