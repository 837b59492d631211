// Expressions as rules of custom definitions: their errors, and their values.
import { call, eventually } from '../../servers.mjs';
import { changed, customFields, schema, transitionFields, value } from './fields.mjs';
import { createGenerator, shownText } from './generator.mjs';
import { longExpression } from './long.mjs';
import { mutated } from './mutations.mjs';
import { causesByIndex, firstError } from './outcomes.mjs';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const perDefinition = 10;
const perLongDefinition = 4;
const ruleIndex = /x-kubernetes-validations\[(\d+)\]/;

/** A definition whose objects have a `spec` of a schema. */
export function definitionOf({ group, spec }) {
  const openAPIV3Schema = { type: 'object', properties: { spec } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  };
}

/** Tries a definition on both servers without storing it. */
export const tryDefinition = (outcomes, body) =>
  outcomes.ask({ method: 'POST', path: `${definitions}?dryRun=All`, body });

const failed = (text) => `dyn(${text}) == dyn("zz")`;

/** How expressions become rules whose errors show what they do, and what the rules see. */
const forms = {
  values: {
    fields: customFields,
    rule: (drawn) => ({ rule: 'false', messageExpression: shownText(drawn) }),
  },
  errors: { fields: customFields, rule: ({ text }) => ({ rule: failed(text) }) },
  updates: {
    fields: transitionFields('oldSelf'),
    rule: ({ text }) => ({ rule: `oldSelf.i == 7 || ${failed(text)}` }),
    isUpdate: true,
  },
  optionalUpdates: {
    fields: transitionFields('oldSelf.value()'),
    rule: ({ text }) => ({
      rule: `!oldSelf.hasValue() || ${failed(text)}`,
      optionalOldSelf: true,
    }),
    isUpdate: true,
  },
};

/**
 * @param options.random random draws
 * @param options.both the servers
 * @param options.outcomes compares what they say
 */
export function definitionRounds({ random, both, outcomes }) {
  const { ask, compare } = outcomes;

  /** Removes the rules that a server refuses, and compares why. */
  async function accepted({ subject, rules, group }) {
    let rest = rules;
    for (let attempt = 0; attempt < 4 && rest.length > 0; attempt++) {
      const validations = rest.map(({ rule }) => rule);
      const spec = { ...schema, 'x-kubernetes-validations': validations };
      const body = definitionOf({ group, spec });
      const answers = await tryDefinition(outcomes, body);
      if (answers.every(({ status }) => status === 201)) return { body, rest };
      const causes = answers.map((answer) => causesByIndex(answer, ruleIndex));
      const isRefused = (at) => causes.some((found) => found.has(at));
      rest.forEach(({ expression, reduce }, at) => {
        if (!isRefused(at)) return;
        compare({ subject, expression, reduce, outcomes: causes.map((found) => found.get(at)) });
      });
      const remaining = rest.filter((_, at) => !isRefused(at));
      if (remaining.length === rest.length) {
        const outcome = ({ status, body: { message } = {} }) =>
          status === 201 ? undefined : `${status} ${message?.replace(/Invalid value.*/s, '')}`;
        compare({ subject, expression: group, outcomes: answers.map(outcome) });
        return undefined;
      }
      rest = remaining;
    }
    return undefined;
  }

  /** Compares what the rules of a served definition say about an object. */
  async function applied({ subject, rest, group, isUpdate }) {
    const path = `/apis/${group}/v1/things`;
    const served = async () => (await ask({ path })).every(({ status }) => status === 200);
    if (!(await eventually(served, { withinMs: 15_000, everyMs: 20 }))) return;
    const object = {
      apiVersion: `${group}/v1`,
      kind: 'Thing',
      metadata: { name: 'x' },
      spec: value,
    };
    const created = await ask({ method: 'POST', path, body: object });
    const answers = isUpdate
      ? await ask({
          method: 'PUT',
          path: `${path}/x`,
          bodies: created.map(({ body }) => ({ ...body, spec: changed })),
        })
      : created;
    const causes = answers.map(({ body }) => body?.details?.causes ?? []);
    if (causes.some(({ length }) => length !== rest.length)) {
      const outcome = ({ status, body }) => `${status} ${body?.message}`;
      const shownRules = rest.map(({ rule }) => JSON.stringify(rule)).join('\n');
      compare({ subject, expression: shownRules, outcomes: answers.map(outcome) });
      return;
    }
    rest.forEach(({ expression }, at) => {
      const messages = causes.map((list) => list[at].message);
      compare({ subject, expression, outcomes: messages });
    });
  }

  async function play({ subject, rules, group, isUpdate = false }) {
    const found = await accepted({ subject, rules, group });
    if (found === undefined) return;
    await ask({ method: 'POST', path: definitions, body: found.body });
    await applied({ subject, rest: found.rest, group, isUpdate });
    const path = `${definitions}/${found.body.metadata.name}`;
    await Promise.all(both.map((server) => call(server, { method: 'DELETE', path })));
  }

  const rounds = Object.entries(forms).map(([subject, { fields, rule, isUpdate }]) => {
    const generator = createGenerator({ random, fields });
    const round = (number) => {
      const drawn = generator.several(perDefinition);
      const rules = drawn.map((one) => ({ expression: one.text, rule: rule(one) }));
      return play({ subject, rules, group: `cel${number}.example.com`, isUpdate });
    };
    return [subject, round];
  });

  /** Expressions with wrong tokens: whether they are accepted, and the first error. */
  const generator = createGenerator({ random, fields: customFields, depthMax: 2 });
  async function mutations(number) {
    const rules = generator.several(perDefinition).map((drawn) => {
      const expression = mutated(drawn.text, random);
      return { expression, rule: { rule: failed(expression) }, reduce: firstError };
    });
    await play({ subject: 'mutations', rules, group: `cel${number}.example.com` });
  }

  async function long(number) {
    const rules = Array.from({ length: perLongDefinition }, () => {
      const expression = longExpression(random);
      return { expression, rule: { rule: failed(expression) }, reduce: firstError };
    });
    await play({ subject: 'long', rules, group: `cel${number}.example.com` });
  }

  return { ...Object.fromEntries(rounds), mutations, long };
}
