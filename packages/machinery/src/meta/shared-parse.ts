import { contained } from '../base/faults.ts';

/** Texts up to this length are kept for a while after their last use, whoever still uses them. */
const recentTextMax = 1024;
/** How many recent texts one generation holds; there are two generations. */
const generationMax = 128;

/**
 * Makes `parse` return the same value for equal texts (TRUST-4). Short texts are remembered in two
 * generations, so that a selector that many requests repeat is parsed once. Long texts are
 * remembered only for as long as somebody holds their value: they cost memory in proportion to
 * their distinct texts in use, not to the requests that carry them. A text that does not parse is
 * not remembered.
 */
export function sharedParse<Value extends object>(
  parse: (text: string) => Value,
): (text: string) => Value {
  let young = new Map<string, Value>();
  let old = new Map<string, Value>();
  const values = new Map<string, WeakRef<Value>>();
  const forget = (text: string): void => {
    if (values.get(text)?.deref() === undefined) values.delete(text);
  };
  const collected = new FinalizationRegistry(contained({ where: 'memory' }, forget));
  const ofShort = (text: string): Value => {
    const recent = young.get(text);
    if (recent !== undefined) return recent;
    const value = old.get(text) ?? parse(text);
    if (young.size >= generationMax) {
      old = young;
      young = new Map();
    }
    young.set(text, value);
    return value;
  };
  const ofLong = (text: string): Value => {
    const cachedValue = values.get(text)?.deref();
    if (cachedValue !== undefined) return cachedValue;
    const value = parse(text);
    values.set(text, new WeakRef(value));
    collected.register(value, text);
    return value;
  };
  return (text) => (text.length > recentTextMax ? ofLong(text) : ofShort(text));
}
