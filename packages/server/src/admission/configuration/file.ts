import {
  ConfigurationError,
  type ConfigurationFormat,
  decodeConfiguration,
  decodeYaml,
  encodeJson,
  listType,
  optional,
  structType,
  textType,
  YamlError,
} from '@wheelhouse/codec';
import {
  type Dialect,
  type FieldError,
  fieldErrorsText,
  isObject,
  type JsonObject,
  member,
  objectsOf,
  textOf,
} from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';

/** The configuration texts of plugins, by plugin name. */
export type PluginTexts = ReadonlyMap<string, string>;

const anyObject: Schema = { type: 'object', preserveUnknownFields: true };
const admissionType = structType('AdmissionConfiguration', {
  plugins: listType(
    structType('AdmissionPluginConfiguration', {
      name: textType,
      path: textType,
      configuration: optional(anyObject),
    }),
  ),
});
/** The file of `--admission-control-config-file` (ADM-1). */
export const admissionFormat = {
  kind: 'AdmissionConfiguration',
  group: 'apiserver.config',
  versions: { v1: admissionType },
} as const satisfies ConfigurationFormat;

/** Plugins whose configuration used to be a whole file, and the members that identify it. */
const wholeFiles = {
  imagePolicy: 'ImagePolicyWebhook',
  podNodeSelectorPluginConfig: 'PodNodeSelector',
};

/**
 * Reads the file of `--admission-control-config-file` (ADM-1): the configuration of each running
 * plugin, inline or in a separate file that `readFile` returns; the first entry of a name wins, and
 * entries of other plugins are ignored. Also accepts the older files that configure a single plugin.
 * Rejects with ConfigurationError.
 */
export async function readPluginTexts(
  text: string,
  options: {
    readonly dialect: Dialect;
    /** Names of the plugins that run. */
    readonly running: ReadonlySet<string>;
    readonly readFile: (path: string) => string;
  },
): Promise<PluginTexts> {
  const { dialect, running, readFile } = options;
  const older = await olderPlugins(text);
  if (older.length > 0) return new Map(older.map((name) => [name, text]));
  // The first version belonged to another group.
  const first = dialect.group('apiserver');
  const { object } = await decodeConfiguration(text, {
    ...admissionFormat,
    ...(text.includes(`${first}/`)
      ? { group: first, versions: { v1alpha1: admissionType } }
      : { group: dialect.group(admissionFormat.group) }),
  });
  const texts = new Map<string, string>();
  for (const plugin of objectsOf(member(object, 'plugins'))) {
    const [name, path] = [textOf(member(plugin, 'name')), textOf(member(plugin, 'path'))];
    const inline = member(plugin, 'configuration');
    if (texts.has(name) || !running.has(name)) continue;
    if (isObject(inline)) texts.set(name, encodeJson(inline).toString());
    else if (path !== '') texts.set(name, readFile(path));
  }
  return texts;
}

async function olderPlugins(text: string): Promise<string[]> {
  const value = await decodePlain(text);
  if (Object.hasOwn(value, 'kind') || Object.hasOwn(value, 'apiVersion')) return [];
  const present = Object.entries(wholeFiles).filter(([name]) => Object.hasOwn(value, name));
  return present.map(([, plugin]) => plugin);
}

/**
 * Decodes a configuration without a kind; rejects with ConfigurationError unless it is an object.
 */
export async function decodePlain(text: string): Promise<JsonObject> {
  try {
    const { value } = await decodeYaml(Buffer.from(text));
    if (isObject(value)) return value;
  } catch (error) {
    if (error instanceof YamlError) throw new ConfigurationError(error.message);
    throw error;
  }
  throw new ConfigurationError('the configuration is not an object');
}

/** Throws one ConfigurationError that lists all errors in one line, as kube-apiserver does. */
export function refuse(errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  throw new ConfigurationError(fieldErrorsText(errors));
}
