// Cost limits at run time: the length of a list at which an expression starts to fail.
import { call, eventually } from '../../servers.mjs';
import { definitionOf } from './definitions.mjs';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const perRound = 1;
const lengthMax = 900;

const item = {
  type: 'object',
  properties: {
    name: { type: 'string', maxLength: 10 },
    count: { type: 'integer' },
    tags: { type: 'array', maxItems: 2, items: { type: 'string', maxLength: 5 } },
  },
};
const schema = {
  type: 'object',
  properties: {
    ints: { type: 'array', maxItems: lengthMax, items: { type: 'integer' } },
    texts: { type: 'array', maxItems: lengthMax, items: { type: 'string', maxLength: 8 } },
    items: { type: 'array', maxItems: lengthMax, items: item },
    map: {
      type: 'object',
      maxProperties: lengthMax,
      additionalProperties: { type: 'integer' },
    },
  },
};

/** An object whose lists have a length. */
function objectOf(length) {
  const numbers = Array.from({ length }, (_, at) => at);
  return {
    ints: numbers,
    texts: numbers.map((at) => `t${at}`),
    items: numbers.map((at) => ({ name: `n${at}`, count: at, tags: ['a', 'b'] })),
    map: Object.fromEntries(numbers.map((at) => [`k${at}`, at])),
  };
}

/** Predicates over `x` and `y` that hold for all items, by the list they visit. */
const predicates = {
  ints: [
    'x >= 0',
    'x + y >= 0',
    'x * y >= 0 && true',
    '!(x < 0)',
    'x in [x, y]',
    'x == x || false',
  ],
  texts: [
    ...['x != "z"', 'x.startsWith("t")', 'x + y != "z"', 'x.size() > 0', 'x.contains("t")'],
    ...['x.matches("^t")', 'x in ["a", x]', '[x, y].size() == 2', '{x: y}.size() == 1'],
    ...['matches(x, "^[a-z]+[0-9]*$")', 'x.matches("^[a-z]{1,99}[0-9]*$")', 'x < "z" || x > y'],
    ...[
      'x.indexOf("") == 0',
      'x.substring(0) == x',
      '[x, y].isSorted() || true',
      'isIP(x) || true',
    ],
    ...['!(x + "abcdefghijklmnop" + y).contains("0123456789ab")', '([x] + [y]).size() == 2'],
    ...['"%s".format([x]) == x', 'x.replace("t", "long") != "z"', '[x, y].join("-") != "z"'],
  ],
  items: [
    ...['x.name != "z"', 'x.count >= 0', 'has(x.name)', 'x.tags.all(t, t != "z")', 'x == x'],
    ...['x.tags.exists(t, t == "b")', 'size(x.tags) == 2', 'x.tags[0] == "a"', '!has(x.nope)'],
    ...['x.tags == y.tags', '(has(x.count) ? x.count : 0) >= 0', 'x.?name.hasValue()'],
    ...['(true ? x : y).name != "z"', 'x.tags[x.count - x.count] == "a"', '[x][0].count >= 0'],
    ...['x.?name.optMap(n, n != "z").value()', 'self.items[x.count].count == x.count'],
  ],
  map: ['x != "z"', 'self.map[x] >= 0', 'x in self.map', 'size(x + y) > 0', 'self.map.size() > 0'],
};

/** An expression that visits each item, or each pair of items. */
function visiting({ pick, chance }) {
  const list = pick(Object.keys(predicates));
  const predicate = () => pick(predicates[list]);
  const body = chance(0.5) ? predicate() : `${predicate()} && ${predicate()}`;
  const inner = pick([
    `self.${list}.all(y, ${body})`,
    `self.${list}.filter(y, ${body}).size() >= 0`,
    `self.${list}.map(y, ${body}).size() >= 0`,
    `!self.${list}.exists(y, !(${body}))`,
    `self.${list}.exists_one(y, ${body}) || true`,
  ]);
  return `self.${list}.all(x, ${inner})`;
}

/** A round that compares the lengths at which some expressions exceed their limit. */
export function limitRounds({ random, both, outcomes }) {
  /** The smallest length that a server refuses. */
  async function boundary({ server, path, apiVersion }) {
    const isRefused = async (length) => {
      const body = { apiVersion, kind: 'Thing', metadata: { name: 'x' }, spec: objectOf(length) };
      const answer = await call(server, { method: 'POST', path: `${path}?dryRun=All`, body });
      return answer.status !== 201;
    };
    let [low, high] = [0, lengthMax];
    if (!(await isRefused(high))) return undefined;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (await isRefused(middle)) high = middle;
      else low = middle;
    }
    return `refuses ${high} items`;
  }

  async function one({ group, expression }) {
    const spec = { ...schema, 'x-kubernetes-validations': [{ rule: expression }] };
    const body = definitionOf({ group, spec });
    const answers = await outcomes.ask({ method: 'POST', path: definitions, body });
    const outcome = ({ status, body: said }) => (status === 201 ? undefined : said?.message);
    outcomes.compare({ subject: 'limits', expression, outcomes: answers.map(outcome) });
    const path = `/apis/${group}/v1/things`;
    const served = async () => {
      const lists = await outcomes.ask({ path });
      return lists.every(({ status }) => status === 200);
    };
    const isAccepted = answers.every(({ status }) => status === 201);
    if (isAccepted && (await eventually(served, { withinMs: 15_000, everyMs: 20 }))) {
      const at = { path, apiVersion: `${group}/v1` };
      const found = await Promise.all(both.map((server) => boundary({ server, ...at })));
      outcomes.compare({ subject: 'limits', expression, outcomes: found });
    }
    await outcomes.ask({ method: 'DELETE', path: `${definitions}/things.${group}` });
  }

  return {
    async limits(number) {
      for (let at = 0; at < perRound; at++) {
        const group = `cel${number}x${at}.example.com`;
        await one({ group, expression: visiting(random) });
      }
    },
  };
}
