// Compares two answers to one request, ignoring parts that legitimately differ.

const volatile = new Set([
  'nodePort',
  'healthCheckNodePort',
  'uid',
  'resourceVersion',
  'creationTimestamp',
  'selfLink',
  'time',
]);

const dates = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;
const plainText = (text) =>
  text
    .replace(dates, 'TIME')
    .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
    .replace(/\beyJ[\w-]+\.[\w-]+\.[\w-]+/, 'TOKEN')
    .replace(/10\.0\.0\.\d+/g, '10.0.0.N')
    .replace(/(in record \(|in object meta: )\d+/g, '$1VERSION')
    .replace(/\b3[0-2]\d{3}\b/g, 'NODEPORT')
    // The reference numbers the types of rules that it does not name.
    .replace(/\bselfType\d+/g, 'selfType');

/**
 * The text of an error without parts that no program reads: values printed as Go types, and
 * differences between two values.
 */
const errorText = (text) =>
  text
    .replace(
      /(Invalid|Duplicate|Unsupported) value: .*[{[].*[}\])](?:\\n)?"?: /gs,
      '$1 value: VALUE: ',
    )
    .replace(/\n\s.*/gs, '');

/** A Status without its message, which repeats its causes. */
function comparableStatus(status) {
  const { message, details, ...rest } = status;
  if (details?.causes === undefined) return { ...rest, details, message: errorText(message ?? '') };
  const plain = details.causes.map((cause) => ({
    ...cause,
    message: plainText(errorText(cause.message)),
  }));
  // The reference lists members of a map in random order.
  const causes = plain.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  return { ...rest, details: { ...details, causes } };
}

/** Which of the server's own controllers wrote a field. */
const ownManagers =
  /^(kube-apiserver|wheelhouse|(customresourcedefinition|cluster-authentication-trust)-controller|apiservice-availability)$/;

function comparable(value, key) {
  if (key === 'manager' && ownManagers.test(value)) return 'OWN';
  if (Array.isArray(value)) return value.map((item) => comparable(item));
  if (typeof value === 'string') return plainText(value);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .filter((name) => !volatile.has(name) || (name === 'uid' && key !== 'metadata'))
      .sort()
      .map((name) => [name, comparable(value[name], name)]),
  );
}

/** The first path at which two values differ, with both values. */
function firstDifference(there, here, path = '') {
  if (JSON.stringify(there) === JSON.stringify(here)) return undefined;
  const isObject = (value) => typeof value === 'object' && value !== null;
  if (isObject(there) && isObject(here) && Array.isArray(there) === Array.isArray(here)) {
    for (const key of new Set([...Object.keys(there), ...Object.keys(here)])) {
      const found = firstDifference(there[key], here[key], `${path}.${key}`);
      if (found !== undefined) return found;
    }
  }
  const show = (value) => JSON.stringify(value)?.slice(0, 700);
  return { path, there: show(there), here: show(here) };
}

const general = (path) => path.replace(/\.\d+(?=\.|$)/g, '[]').replace(/\.f:[^.]*/g, '.f');

const isStatus = ({ body }) => body?.kind === 'Status';

/** Whether README.md lists the difference between two answers, whose messages are given. */
function isAccepted({ reference, wheelhouse, there, here }) {
  // These answers name media types, and objects that a deletion of a collection reaches.
  if (reference.status === 415 && wheelhouse.status === 415) return true;
  if (reference.status === 200 && isStatus(wheelhouse) && reference.body.items) return true;
  if (wheelhouse.status !== 400) return false;
  if (!process.env.PEERS_YAML_ERRORS && /yaml: /.test(here) && /yaml: /.test(there)) return true;
  const isStrict = /strict decoding error/.test(here) && /strict decoding error/.test(there);
  if (isStrict && (reference.status === 422 || there.includes('cbor: found'))) return true;
  return (
    /contains invalid UTF-8|invalid UTF-8 in JSON text/.test(here) || there.includes(scaleError)
  );
}

/** What the reference says about every malformed Scale of a custom object. */
const scaleError = 'no kind is registered for the type v1.Scale';

/**
 * @returns undefined if the answers are equivalent; otherwise a `signature`, which similar
 * differences share, and a `text`
 */
export function compareAnswers(reference, wheelhouse) {
  const lines = (answer) =>
    `  ${answer.status} ${answer.body?.reason ?? ''} ${answer.body?.message ?? ''}`.slice(0, 1200);
  const both = `  reference ${lines(reference)}\n  here      ${lines(wheelhouse)}`;
  // Bad input is never a 500 or a dropped connection here.
  if (reference.status === 0 && wheelhouse.status >= 400) return undefined;
  const isMended = reference.status === 500 && wheelhouse.status >= 400 && wheelhouse.status < 500;
  const [there, here] = [reference, wheelhouse].map(({ body }) => body?.message ?? '');
  if (isMended && here.includes(there)) return undefined;
  if (isAccepted({ reference, wheelhouse, there, here })) return undefined;
  const unreadable = /^strconv.ParseUint: .*: invalid syntax$|^json: cannot unmarshal/;
  if (isMended && unreadable.test(there)) return undefined;
  if (reference.status !== wheelhouse.status)
    return { signature: `${reference.status} ${wheelhouse.status}`, text: both };
  if (typeof reference.body === 'string' && typeof wheelhouse.body === 'string') return undefined;
  const [expected, actual] = [reference, wheelhouse].map(({ body }) =>
    comparable(isStatus({ body }) ? comparableStatus(body) : body, ''),
  );
  const found = firstDifference(expected, actual);
  if (found !== undefined) {
    const signature = `${reference.status} at ${general(found.path)}`;
    const text = `  ${found.path}\n  reference ${found.there}\n  here      ${found.here}`;
    return { signature, text: isStatus(reference) ? `${text}\n${both}` : text };
  }
  const warnings = (answer) => [answer.warnings ?? []].flat().join('; ').replace(dates, 'TIME');
  if (warnings(reference) !== warnings(wheelhouse)) {
    const text = `  reference ${warnings(reference)}\n  here      ${warnings(wheelhouse)}`;
    return { signature: `${reference.status} warnings`, text };
  }
  return undefined;
}
