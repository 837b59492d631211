import type { ReviewPort } from '../../endpoints/call.ts';
import { createReloadMetrics, followFile } from '../../files/followed-files.ts';
import { createPrivilegedGroupAuthorizer } from '../../gates/authz/authorization.ts';
import type { ConfiguredAuthorizer } from '../../gates/authz/authorization-configuration.ts';
import type { Authorizer } from '../../gates/authz/contract.ts';
import type { EscalationPort } from '../../gates/authz/rbac/escalation-check.ts';
import type { ReadingBase } from '../context.ts';
import {
  type AuthorizationMetrics,
  type AuthorizerPart,
  type AuthorizerParts,
  createAuthorizationMetrics,
  openAuthorizerParts,
} from './authorizer-parts.ts';
import { type ConfiguredAuthorizers, readAuthorizers } from './configured-authorizers.ts';

interface AuthorizersOptions extends ReadingBase {
  readonly configured: ConfiguredAuthorizers;
}

/** The current chain. */
export interface Authorizers {
  /** The authorizers in order; a new list when the configuration changes. */
  readonly list: readonly Authorizer[];
  readonly rules: EscalationPort['rules'];
  readonly rulesFor: ReviewPort['rulesFor'];
  close(): void;
}

/** The chain of one configuration. */
interface Chain {
  readonly list: readonly Authorizer[];
  readonly parts: readonly AuthorizerPart[];
  /** Closes connections once the requests in flight have ended. */
  retire(): void;
  /** Closes connections at once. */
  close(): void;
}

/**
 * The configured authorizers, with members of `system:masters` allowed ahead of them (AUTHZ-2,
 * AUTHZ-10). Authorizers of a file are replaced when it changes (AUTHZ-3); an invalid file changes
 * nothing. Rejects when one cannot be set up.
 */
export async function createAuthorizers(
  base: ReadingBase,
  configured: ConfiguredAuthorizers,
): Promise<Authorizers> {
  const options = { ...base, configured };
  const { authorizers, file } = configured;
  const types = new Set(authorizers.map(({ type }) => type));
  const parts = await openAuthorizerParts(options, types);
  const meter = createAuthorizationMetrics(base.metrics.registry, base.config.clock);
  const build = (chosen: readonly ConfiguredAuthorizer[]) =>
    buildChain(chosen, { ...options, parts, meter });
  let chain: Chain;
  try {
    chain = await build(authorizers);
  } catch (error) {
    parts.close();
    throw error;
  }
  const exchange = (next: Chain): void => {
    chain.retire();
    chain = next;
    current.list = next.list;
  };
  const followed =
    file === undefined ? undefined : followAuthorization({ ...options, file, build, exchange });
  const current: Authorizers & { list: readonly Authorizer[] } = {
    list: chain.list,
    rules: parts.rules,
    async rulesFor(user, namespace) {
      const answers = chain.parts.map((part) => part.rulesFor(user, namespace));
      return {
        rules: answers.flatMap(({ rules }) => rules),
        errors: answers.flatMap(({ errors }) => errors),
      };
    },
    close() {
      followed?.stop();
      chain.close();
      parts.close();
    },
  };
  return current;
}

async function buildChain(
  configured: readonly ConfiguredAuthorizer[],
  options: AuthorizersOptions & {
    readonly parts: AuthorizerParts;
    readonly meter: AuthorizationMetrics;
  },
): Promise<Chain> {
  const { parts, meter } = options;
  const chosen: AuthorizerPart[] = [];
  const connected: { retire(): void; close(): void }[] = [];
  const list: Authorizer[] = [createPrivilegedGroupAuthorizer()];
  const letGo = (how: 'retire' | 'close') => {
    for (const one of connected) one[how]();
  };
  try {
    for (const one of configured) {
      const { type, name } = one;
      let part: AuthorizerPart | undefined;
      if (one.type === 'Webhook') {
        const { connectAuthorizer } = await import('./connected-authorizer.ts');
        const made = await connectAuthorizer(one.webhook, { ...options, metrics: meter });
        connected.push(made);
        part = made;
      } else {
        part = parts.of(type);
      }
      if (part === undefined) {
        throw new Error(
          `authorizer type ${type} is not allowed if it was not enabled at initial server startup`,
        );
      }
      chosen.push(part);
      list.push(meter.measured(part.authorizer, { type, name }));
    }
  } catch (error) {
    letGo('close');
    throw error;
  }
  const retire = () => letGo('retire');
  return { list, parts: chosen, retire, close: () => letGo('close') };
}

function followAuthorization(
  options: AuthorizersOptions & {
    readonly file: { readonly path: string; readonly text: string };
    readonly build: (configured: readonly ConfiguredAuthorizer[]) => Promise<Chain>;
    readonly exchange: (next: Chain) => void;
  },
): { stop(): void } {
  const { config, dialect, metrics, file, build, exchange } = options;
  const { clock, logger } = config;
  const count = createReloadMetrics(metrics.registry, {
    controller: 'authorization_config_controller',
    what: 'authorization configuration',
    clock,
    dialect,
  });
  const requiredTypes = new Set(
    options.configured.authorizers.map(({ type }) => type).filter((type) => type !== 'Webhook'),
  );
  let loaded = comparable(options.configured.authorizers);
  let outdated = false;
  return followFile({
    file: file.path,
    text: file.text,
    clock,
    async load(text) {
      const configured = await readAuthorizers(text, { config, dialect, requiredTypes });
      const found = comparable(configured);
      outdated = found !== loaded;
      if (!outdated) return;
      loaded = found;
      exchange(await build(configured));
    },
    observe(outcome) {
      // A text with the same meaning counts as no reload, as in kube-apiserver.
      if (outcome.status === 'success' && !outdated) return;
      count(outcome.status);
      if (outcome.status === 'success') logger.info('reloaded the authorization configuration');
      else {
        const error = String(outcome.error);
        logger.error('reloading the authorization configuration', { error });
      }
    },
  });
}

/** A text that identifies a chain; its functions are represented by their expressions. */
function comparable(authorizers: readonly ConfiguredAuthorizer[]): string {
  return JSON.stringify(authorizers);
}
