import type { Authorizer } from '../authz/contract.ts';
import type { EscalationPort } from '../authz/escalation-check.ts';
import { alwaysAllow, alwaysDeny, createPrivilegedGroupAuthorizer } from '../authz/fixed.ts';
import { createRbacAuthorizer } from '../authz/rbac-authorizer.ts';
import { policyRule } from '../authz/rules.ts';
import type { Dialect } from '../dialect.ts';
import type { ReviewPort } from '../endpoints/review-port.ts';
import type { Api } from './api.ts';
import type { ServerConfig } from './config.ts';
import { defaultGates } from './feature-gates.ts';
import { openRbacSource } from './rbac-source.ts';

/** Members of `system:masters` pass unasked; then come the modes as ordered (AUTHZ-2, AUTHZ-10). */
export async function createAuthorizers(options: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}): Promise<{
  readonly list: readonly Authorizer[];
  readonly rules: EscalationPort['rules'];
  readonly rulesFor: ReviewPort['rulesFor'];
  readonly close: () => void;
}> {
  const list: Authorizer[] = [createPrivilegedGroupAuthorizer()];
  const rbac = createRbac(options);
  const node = options.config.authorizationModes.includes('Node')
    ? await openNodeAuthorizer(options)
    : undefined;
  for (const mode of options.config.authorizationModes) {
    if (mode === 'AlwaysAllow') list.push(alwaysAllow);
    else if (mode === 'AlwaysDeny') list.push(alwaysDeny);
    else if (mode === 'Node' && node !== undefined) list.push(node.authorizer);
    else list.push((await rbac.open()).authorizer);
  }
  const modes = new Set(options.config.authorizationModes);
  return {
    list,
    rules: rbac.rules,
    async rulesFor(user, namespace) {
      const everything = modes.has('AlwaysAllow') ? allRules : [];
      const unlisted = node?.authorizer.unlisted(user) ?? [];
      if (!modes.has('RBAC')) return { rules: everything, errors: [unlisted].flat() };
      const { authorizer } = await rbac.open();
      const { rules, errors } = authorizer.rulesFor(user, namespace);
      return { rules: [...everything, ...rules], errors: [unlisted, errors].flat() };
    },
    close: () => {
      node?.close();
      rbac.close();
    },
  };
}

/** Loaded only where nodes are told apart: its graph follows every pod. */
async function openNodeAuthorizer({
  config,
  dialect,
  api,
}: {
  readonly config: ServerConfig;
  readonly dialect: Dialect;
  readonly api: Api;
}) {
  const [{ openNodeGraph }, { createNodeAuthorizer }] = await Promise.all([
    import('./node-source.ts'),
    import('../authz/node-authorizer.ts'),
  ]);
  const { caches } = api.registry;
  const snapshot = api.catalogue.snapshot();
  const { graph, close } = await openNodeGraph({ caches, snapshot, dialect });
  const gates = config.featureGates ?? defaultGates;
  const nodesAndPods = gates.enabled('AuthorizeNodeWithSelectors') ? 'own' : 'any';
  return { authorizer: createNodeAuthorizer({ graph, dialect, nodesAndPods }), close };
}

const allRules = [
  policyRule({ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }),
  policyRule({ verbs: ['*'], nonResourceURLs: ['*'] }),
];

/** Also for servers where RBAC does not decide: granting more than one holds is checked there too. */
function createRbac({ api, dialect }: { api: Api; dialect: Dialect }) {
  const { caches } = api.registry;
  const open = async () => {
    const source = await openRbacSource({ caches, snapshot: api.catalogue.snapshot(), dialect });
    return { source, authorizer: createRbacAuthorizer({ source, dialect }) };
  };
  let opened: ReturnType<typeof open> | undefined;
  const openOnce = () => {
    opened ??= open();
    return opened;
  };
  return {
    open: openOnce,
    async rules() {
      const { source, authorizer } = await openOnce();
      await source.fresh();
      return authorizer;
    },
    close: () => void opened?.then(({ authorizer }) => authorizer.stop()),
  };
}
