import {
  type Dialect,
  dialectNames,
  dialectOf,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
} from '@wheelhouse/machinery';

/** Whether a plugin may prompt the user. */
type InteractiveMode = 'Never' | 'IfAvailable' | 'Always';

/** The `exec` section of a kubeconfig user: the plugin that provides credentials (AUTHN-11). */
export interface ExecConfig {
  readonly command: string;
  readonly args: readonly string[];
  /** Variables to add to the environment of the client. */
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly apiVersion: string;
  /** The text to print if the plugin is not installed. */
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: InteractiveMode | '';
}

/** The server for which a plugin provides a credential, passed as `spec.cluster`. */
export interface ExecCluster {
  readonly server: string;
  readonly tlsServerName?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly caPem?: string | undefined;
  readonly proxyUrl?: string | undefined;
  readonly disableCompression?: boolean | undefined;
  /** The extension of the cluster for plugins, passed unchanged. */
  readonly config?: JsonValue | undefined;
}

const groupOf = (dialect: Dialect): string => dialect.group('client.authentication');

/** Returns the dialect of a plugin's apiVersion; undefined for an unknown version. */
export function execDialect(apiVersion: string): Dialect | undefined {
  return dialectNames
    .map(dialectOf)
    .find((dialect) =>
      ['v1', 'v1beta1'].some((version) => apiVersion === `${groupOf(dialect)}/${version}`),
    );
}

/** The names of the cluster extension for plugins: `client.authentication.<suffix>/exec`. */
export const execExtensionNames: readonly string[] = dialectNames.map(
  (name) => `${groupOf(dialectOf(name))}/exec`,
);

/** Parses a user's `exec` section, whose members already have the right types. */
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
  // The field is required in v1 only.
  const defaultMode = apiVersion.endsWith('/v1beta1') ? 'IfAvailable' : '';
  return {
    command: text(exec, 'command'),
    args: list('args').map((argument) => (typeof argument === 'string' ? argument : '')),
    env: list('env')
      .filter(isObject)
      .map((variable) => ({ name: text(variable, 'name'), value: text(variable, 'value') })),
    apiVersion,
    installHint: withoutControls(text(exec, 'installHint')),
    provideClusterInfo: exec.provideClusterInfo === true,
    interactiveMode: (mode === '' ? defaultMode : mode) as InteractiveMode | '',
  };
}

/** Validates a user's `exec` section. Returns errors in client-go's wording. */
export function execConfigErrors(config: ExecConfig, user: string): string[] {
  const errors: string[] = [];
  const checkPresent = (value: string, what: string): void => {
    if (value !== '') return;
    errors.push(`${what} must be specified for ${user} to use exec authentication plugin`);
  };
  checkPresent(config.command, 'command');
  checkPresent(config.apiVersion, 'apiVersion');
  for (const { name } of config.env) checkPresent(name, 'env variable name');
  checkPresent(config.interactiveMode, 'interactiveMode');
  if (!['', 'Never', 'IfAvailable', 'Always'].includes(config.interactiveMode)) {
    errors.push(`invalid interactiveMode for ${user}: ${JSON.stringify(config.interactiveMode)}`);
  }
  return errors;
}

/** Escapes control characters, so that text from a file cannot control the terminal. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{C}\t-\r]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
    return `U+${code.padStart(4, '0')}`;
  });
}
