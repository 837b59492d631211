import {
  type Clock,
  type Dialect,
  goQuoted,
  goValue,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  objectOf,
  parseApiVersion,
  problemText,
  textOf,
  typeMetaStruct,
} from '@wheelhouse/machinery';
import { decodeTyped, type Schema } from '@wheelhouse/schema';
import { structType, textType } from './configuration.ts';
import { yamlBodyLimits } from './decode-limits.ts';
import { answerLimits, decodeJsonInSlices, JsonError, type JsonLimits } from './json.ts';
import { decodeYaml } from './yaml.ts';

/** The kind of a review, and the other kinds that a decoder of its answers knows. */
interface ReviewType {
  readonly dialect: Pick<Dialect, 'groupSuffix'>;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** All versions of the kind. */
  readonly versions: readonly string[];
}

/**
 * Decodes the answer to a review. As in kube-apiserver, its Content-Type does not matter: a text
 * that starts with a brace is JSON, any other is YAML, which is bounded. Rejects with an Error in
 * kube-apiserver's wording for a malformed answer, and for one that states another type than `type`.
 */
export async function decodeReviewAnswer(
  bytes: Buffer,
  options: {
    readonly clock: Pick<Clock, 'monotonic'>;
    readonly limits?: JsonLimits;
    readonly type?: ReviewType;
  },
): Promise<JsonObject> {
  const decoded = await decode(bytes, { limits: answerLimits, ...options });
  // Go takes null for an object without members, whose type is the expected one.
  const value = decoded === null && options.type !== undefined ? {} : decoded;
  if (!isObject(value)) {
    const why = problemText({ code: 'misfit', what: goValue(value), type: typeMetaStruct });
    throw new Error(problemText({ code: 'no type', why }));
  }
  const fault = options.type === undefined ? undefined : typeFault(value, options.type);
  if (fault !== undefined) throw new Error(fault);
  return value;
}

/** Kinds that every decoder knows in every version. */
const commonKinds: ReadonlySet<string> = new Set([
  'Status',
  'APIVersions',
  'APIGroup',
  'APIGroupList',
  'APIResourceList',
]);

/** Why an answer that states its type is not of the expected type. */
function typeFault(answer: JsonObject, type: ReviewType): string | undefined {
  for (const name of ['apiVersion', 'kind']) {
    const stated = answer[name] ?? '';
    if (typeof stated === 'string') continue;
    const misfit = { what: goValue(stated), type: 'string', field: `.${name}` };
    return problemText({ code: 'no type', why: problemText({ code: 'misfit', ...misfit }) });
  }
  const apiVersion = textOf(answer['apiVersion']) || `${type.group}/${type.version}`;
  const kind = textOf(answer['kind']) || type.kind;
  const parsed = parseApiVersion(apiVersion);
  if (parsed === undefined) return `unexpected GroupVersion string: ${apiVersion}`;
  const { group, version } = parsed;
  const isVersion = group === type.group && kind === type.kind && type.versions.includes(version);
  if (isVersion && version === type.version) return undefined;
  const expected = `${type.version}.${type.kind}`;
  if (isVersion || commonKinds.has(kind)) {
    const stated = isVersion ? `${version}.${kind}` : `v1.${kind}`;
    return `converting (${stated}) to (${expected}): unknown conversion`;
  }
  const scheme = `${type.dialect.groupSuffix}/apiserver/pkg/util/webhook/client.go:71`;
  const stated = `no kind ${goQuoted(kind)} is registered for version ${goQuoted(apiVersion)}`;
  return `${stated} in scheme ${goQuoted(scheme)}`;
}

async function decode(
  bytes: Buffer,
  { clock, limits }: { clock: Pick<Clock, 'monotonic'>; limits: JsonLimits },
): Promise<JsonValue> {
  if (!/^\s*\{/.test(bytes.toString('latin1', 0, spacesMax))) {
    if (bytes.length > yamlBytesMax) {
      throw new Error(`limit is ${yamlBytesMax} bytes of an answer in YAML`);
    }
    return (await decodeYaml(bytes, { ...yamlBodyLimits, ...limits })).value;
  }
  try {
    return (await decodeJsonInSlices(bytes, { clock, limits })).value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Error(problemText({ code: 'no type', why: error.message }));
  }
}

/** Maximum number of bytes of an answer in YAML: that of a request's body (TRUST-2). */
const yamlBytesMax = 3_145_728;
/** Maximum number of spaces before the brace of a JSON text. */
const spacesMax = 2048;

/**
 * Returns a function that reads the status of an answer that repeats a review, which is empty if
 * the answer has none. It throws for a malformed answer, and for one of another type.
 */
export function reviewStatusReader(
  kind: string,
  status: Schema,
): (answer: JsonObject, apiVersion: string) => JsonObject {
  const decode = decodeTyped(structType(kind, { apiVersion: textType, kind: textType, status }));
  return (answer, apiVersion) => {
    const review = decode(answer);
    const stated = [review['kind'] || kind, review['apiVersion'] || apiVersion];
    if (stated[0] !== kind || stated[1] !== apiVersion) {
      throw new Error(`it is a ${stated.join(' of ')}, not a ${kind} of ${apiVersion}`);
    }
    return objectOf(member(review, 'status'));
  };
}
