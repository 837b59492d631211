// Expressions as validations of policies for Deployments: their errors, and their messages.
import { eventually } from '../../servers.mjs';
import { deployment, policyFields, variables } from './fields.mjs';
import { createGenerator, shownText } from './generator.mjs';
import { causesByIndex } from './outcomes.mjs';

const admission = '/apis/admissionregistration.k8s.io/v1';
const policies = `${admission}/validatingadmissionpolicies`;
const bindings = `${admission}/validatingadmissionpolicybindings`;
const namespace = 'expressions';
const deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
const perPolicy = 12;
const marker = 'the last validation';

function policyOf({ name, rules }) {
  const rule = {
    apiGroups: ['apps'],
    apiVersions: ['v1'],
    operations: ['CREATE', 'UPDATE', 'DELETE'],
    resources: ['deployments'],
  };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name },
    spec: {
      failurePolicy: 'Fail',
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConstraints: { resourceRules: [rule] },
      variables,
      validations: [...rules, { expression: 'false', message: marker }],
    },
  };
}

/** A binding of a policy to the Deployments of its round. */
const bindingOf = (name) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name },
  spec: {
    policyName: name,
    validationActions: ['Warn'],
    paramRef: { name: 'params', namespace, parameterNotFoundAction: 'Deny' },
    matchResources: { objectSelector: { matchLabels: { round: name } } },
  },
});

/** The warnings of an answer by validation, without the names that lead them. */
function warningsOf({ warnings = '' }, name) {
  const lead = `Validation failed for ValidatingAdmissionPolicy '${name}' with binding '${name}': `;
  const list =
    [warnings]
      .flat()
      .join(', ')
      .match(/299 - "(?:[^"\\]|\\.)*"/g) ?? [];
  const unquoted = list.map((text) => text.slice(7, -1).replace(/\\(.)/g, '$1'));
  return unquoted.map((text) => text.replace(lead, ''));
}

/** A round that compares a policy with some expressions. */
export function policyRounds({ random, outcomes }) {
  const { ask, compare } = outcomes;
  // The reference drops warnings with line breaks.
  const generator = createGenerator({ random, fields: policyFields, isOneLine: true });
  let isPrepared = false;

  async function prepare() {
    isPrepared = true;
    await ask({
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { metadata: { name: namespace } },
    });
    const params = { metadata: { name: 'params' }, data: { p: 'param', a: 'b' } };
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    await ask({ method: 'POST', path, body: params });
  }

  /** Removes the validations that a server refuses, and compares why. */
  async function accepted({ name, rules }) {
    let rest = rules;
    for (let attempt = 0; attempt < 4 && rest.length > 0; attempt++) {
      const body = policyOf({ name, rules: rest.map(({ rule }) => rule) });
      const answers = await ask({ method: 'POST', path: `${policies}?dryRun=All`, body });
      if (answers.every(({ status }) => status === 201)) return { body, rest };
      const causes = answers.map((answer) => causesByIndex(answer, /validations\[(\d+)\]/));
      const isRefused = (at) => causes.some((found) => found.has(at));
      rest.forEach(({ expression }, at) => {
        if (!isRefused(at)) return;
        const said = causes.map((found) => found.get(at));
        compare({ subject: 'policies', expression, outcomes: said });
      });
      const remaining = rest.filter((_, at) => !isRefused(at));
      if (remaining.length === rest.length) return undefined;
      rest = remaining;
    }
    return undefined;
  }

  /** Sends a request until both servers apply the policy, and compares their warnings. */
  async function warned({ name, rest, request }) {
    let found;
    const isApplied = async () => {
      const answers = await ask(request);
      found = answers.map((answer) => warningsOf(answer, name));
      return found.every((list) => list.includes(marker));
    };
    if (!(await eventually(isApplied, { withinMs: 10_000, everyMs: 100 }))) {
      const lists = found.map((list) => `not applied: ${list.join('\n')}`);
      compare({ subject: 'policies', expression: name, outcomes: lists });
      return;
    }
    const [there, here] = found;
    const isComplete = there.length === rest.length + 1;
    if (there.length === here.length) {
      there.forEach((text, at) => {
        const expression = isComplete ? (rest[at]?.expression ?? marker) : text;
        compare({ subject: 'policies', expression, outcomes: [text, here[at]] });
      });
      return;
    }
    const shownRules = rest.map(({ expression }) => expression).join('\n');
    const lists = found.map((list) => list.join('\n'));
    compare({ subject: 'policies', expression: shownRules, outcomes: lists });
  }

  return {
    async policies(number) {
      if (!isPrepared) await prepare();
      const name = `round-${number}`;
      const rules = generator.several(perPolicy).map((drawn) => ({
        expression: drawn.text,
        rule: {
          expression: `dyn(${drawn.text}) == dyn("zz")`,
          messageExpression: shownText(drawn),
        },
      }));
      const found = await accepted({ name, rules });
      if (found === undefined) return;
      await ask({ method: 'POST', path: policies, body: found.body });
      await ask({ method: 'POST', path: bindings, body: bindingOf(name) });
      const object = structuredClone(deployment);
      Object.assign(object.metadata, { name: `hello-${number}`, namespace });
      object.metadata.labels.round = name;
      const create = { method: 'POST', path: deployments, body: object };
      await warned({
        name,
        rest: found.rest,
        request: { ...create, path: `${deployments}?dryRun=All` },
      });
      await ask(create);
      const path = `${deployments}/${object.metadata.name}`;
      const patch = { spec: { replicas: 6, paused: null }, metadata: { labels: { k: 'v2' } } };
      const update = { method: 'PATCH', path: `${path}?dryRun=All`, body: patch };
      await warned({ name, rest: found.rest, request: update });
      await warned({
        name,
        rest: found.rest,
        request: { method: 'DELETE', path: `${path}?dryRun=All` },
      });
      await ask({ method: 'DELETE', path: `${bindings}/${name}` });
      await ask({ method: 'DELETE', path: `${policies}/${name}` });
    },
  };
}
