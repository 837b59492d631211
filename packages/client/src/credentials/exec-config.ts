import {
  type Dialect,
  dialectNames,
  dialectOf,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';

export type InteractiveMode = 'Never' | 'IfAvailable' | 'Always';

/** A user's `exec` of a kubeconfig: the program that gives its credentials (AUTHN-11). */
export interface ExecConfig {
  readonly command: string;
  readonly args: readonly string[];
  /** Put on top of the client's own environment. */
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly apiVersion: string;
  /** Shown when the program is not there. */
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: InteractiveMode | '';
}

/** The server a plugin gets a credential for, as `spec.cluster` tells it. */
export interface ExecCluster {
  readonly server: string;
  readonly tlsServerName?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly caPem?: string | undefined;
  readonly proxyUrl?: string | undefined;
  readonly disableCompression?: boolean | undefined;
  /** The cluster's extension for plugins, handed on as it is. */
  readonly config?: JsonValue | undefined;
}

const groupOf = (dialect: Dialect): string => dialect.group('client.authentication');

/** The dialect a plugin speaks, by its apiVersion; undefined when the version is unknown. */
export function execDialect(apiVersion: string): Dialect | undefined {
  return dialectNames
    .map(dialectOf)
    .find((dialect) =>
      ['v1', 'v1beta1'].some((version) => apiVersion === `${groupOf(dialect)}/${version}`),
    );
}

/** Names of the cluster extension that plugins are handed: `client.authentication.<suffix>/exec`. */
export const execExtensionNames: readonly string[] = dialectNames.map(
  (name) => `${groupOf(dialectOf(name))}/exec`,
);

/** Reads a user's `exec`, whose members are of the right types already. */
export function readExecConfig(exec: JsonObject): ExecConfig {
  const text = (object: JsonObject, name: string): string => {
    const value = member(object, name);
    return typeof value === 'string' ? value : '';
  };
  const list = (name: string): readonly JsonValue[] => {
    const value = member(exec, name);
    return Array.isArray(value) ? value : [];
  };
  const apiVersion = text(exec, 'apiVersion');
  const mode = text(exec, 'interactiveMode');
  // Versions before v1 did not have the field, so their users need not name it.
  const usual = apiVersion.endsWith('/v1beta1') ? 'IfAvailable' : '';
  return {
    command: text(exec, 'command'),
    args: list('args').map((one) => (typeof one === 'string' ? one : '')),
    env: list('env')
      .filter(isObject)
      .map((one) => ({ name: text(one, 'name'), value: text(one, 'value') })),
    apiVersion,
    installHint: withoutControls(text(exec, 'installHint')),
    provideClusterInfo: exec.provideClusterInfo === true,
    interactiveMode: (mode === '' ? usual : mode) as InteractiveMode | '',
  };
}

/** What is wrong with a user's `exec`, in upstream's words. */
export function execConfigErrors(config: ExecConfig, user: string): string[] {
  const errors: string[] = [];
  const required = (value: string, what: string): void => {
    if (value !== '') return;
    errors.push(`${what} must be specified for ${user} to use exec authentication plugin`);
  };
  required(config.command, 'command');
  required(config.apiVersion, 'apiVersion');
  for (const { name } of config.env) required(name, 'env variable name');
  required(config.interactiveMode, 'interactiveMode');
  if (!['', 'Never', 'IfAvailable', 'Always'].includes(config.interactiveMode)) {
    errors.push(`invalid interactiveMode for ${user}: ${JSON.stringify(config.interactiveMode)}`);
  }
  return errors;
}

/** A text from a file must not move the terminal's cursor or change its colours. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{C}\t-\r]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
    return `U+${code.padStart(4, '0')}`;
  });
}
