import { statSync } from 'node:fs';
import { type Dialect, errorText, systemErrorCode } from '@wheelhouse/machinery';
import { readConfigurationFile } from '../../files/followed-files.ts';
import { defaultGates } from '../../flags/feature-gates.ts';
import type { ConfiguredAuthorizer } from '../../gates/authz/authorization-configuration.ts';
import type { AuthorizerType } from '../../gates/authz/contract.ts';
import type { ServerConfig } from '../config.ts';
import type { Around } from '../context.ts';
import { runsController } from '../controllers/settings.ts';

/** The authorizers a server starts with, and the file to follow if they came from one. */
export interface ConfiguredAuthorizers {
  readonly authorizers: readonly ConfiguredAuthorizer[];
  readonly file: { readonly path: string; readonly text: string } | undefined;
}

/** Time limit of the webhook that flags configure, in milliseconds. */
const flagTimeoutMs = 30_000;

/**
 * The authorizers that flags or the configuration file select (AUTHZ-2, AUTHZ-3). Rejects with the
 * first error in the file.
 */
export async function readAuthorization(
  config: ServerConfig,
  dialect: Dialect,
): Promise<ConfiguredAuthorizers> {
  const path = config.authorization?.configFile;
  if (path === undefined) {
    return { authorizers: config.authorizationModes.map(ofFlags(config)), file: undefined };
  }
  let text: string;
  try {
    text = readConfigurationFile(path);
  } catch (error) {
    const why = errorText(error);
    throw new Error(`failed to load AuthorizationConfiguration from file: ${why}`);
  }
  const requiredTypes = new Set<AuthorizerType>();
  const authorizers = await readAuthorizers(text, { config, dialect, requiredTypes });
  return { authorizers, file: { path, text } };
}

/** Parses the authorizers of a file's text; loads the parser on first use. */
export async function readAuthorizers(
  text: string,
  options: {
    readonly config: ServerConfig;
    readonly dialect: Dialect;
    /** Types that the file must keep. */
    readonly requiredTypes: ReadonlySet<AuthorizerType>;
  },
): Promise<readonly ConfiguredAuthorizer[]> {
  const { config, dialect, requiredTypes } = options;
  const { loadAuthorizationConfiguration } = await import(
    '../../gates/authz/authorization-configuration.ts'
  );
  const selectors = selectorsOf(config);
  return loadAuthorizationConfiguration(text, { dialect, requiredTypes, fileProblem, selectors });
}

/** Whether webhooks and match conditions receive selectors. */
export function selectorsOf(config: ServerConfig): 'told' | 'left out' {
  const gates = config.featureGates ?? defaultGates;
  return gates.enabled('AuthorizeWithSelectors') ? 'told' : 'left out';
}

function ofFlags(config: ServerConfig): (type: AuthorizerType) => ConfiguredAuthorizer {
  return (type) => {
    if (type !== 'Webhook') return { type, name: type.toLowerCase() };
    const webhook = config.authorization?.webhook;
    if (webhook === undefined) {
      throw new Error("authorization-mode Webhook's authorization config file not passed");
    }
    const { configFile, ...settings } = webhook;
    const name = 'default';
    return {
      type,
      name,
      webhook: {
        ...settings,
        name,
        timeoutMs: flagTimeoutMs,
        failurePolicy: 'NoOpinion',
        kubeConfigFile: configFile,
        matches: undefined,
        expressions: [],
      },
    };
  };
}

/** Why a configured file is unusable; undefined if it exists. */
function fileProblem(file: string): string | undefined {
  try {
    return statSync(file).isFile() ? undefined : 'must be a regular file';
  } catch (error) {
    const code = systemErrorCode(error);
    const why = code === 'ENOENT' ? 'no such file or directory' : String(code);
    return `error loading file: stat ${file}: ${why}`;
  }
}

/**
 * Creates the default roles and bindings if RBAC is on; those in namespaces once `namespaces`
 * resolves.
 */
export async function createDefaultRoles(
  { config, dialect, api }: Around,
  namespaces: Promise<void>,
): Promise<void> {
  if (!config.authorizationModes.includes('RBAC')) return;
  const { reconcileDefaultRoles } = await import('../../controllers/identity/default-roles.ts');
  const { featureGates: features = defaultGates, logger } = config;
  await reconcileDefaultRoles({
    registry: api.registry,
    snapshot: api.catalogue.snapshot(),
    dialect,
    namespaces,
    aggregates: runsController(config, 'clusterrole-aggregation-controller'),
    logger,
    features,
  });
}
