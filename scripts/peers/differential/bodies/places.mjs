// Puts odd texts at some places of an object: a mark stands for each until the object is a text.

/**
 * @param options.random draws (see ../random.mjs)
 * @param options.mutator see ../mutate.mjs
 * @returns `mark(object, schema, choose)`: a copy of the object with marks, and the text for each
 *   mark, which `choose` returns for a schema and a name
 */
export function createMarker({ random, mutator }) {
  const { pickPlace, resolved } = mutator;
  const nameOf = (key) => (typeof key === 'string' ? key : '');

  function mark(object, schema, choose) {
    const copy = structuredClone(object);
    const texts = new Map();
    const count = random.pick([0, 1, 1, 1, 1, 2, 3]);
    for (let i = 0; i < count; i++) {
      const place = pickPlace(copy, schema);
      if (place === undefined) continue;
      let { container, key, schema: own } = place;
      if (place.absent !== undefined) {
        key = random.pick(place.absent);
        own = own.properties[key];
      }
      if (typeof container[key] === 'string' && texts.has(container[key])) continue;
      const name = `@@${i}@@`;
      const before = container[key];
      texts.set(
        name,
        choose({ schema: own ?? {}, target: resolved(own), name: nameOf(key), before }),
      );
      container[key] = name;
    }
    return { copy, texts };
  }
  return { mark };
}
