// Prints Chrome DevTools' numbers for snapshots, one fact per line, for the test `devtools_oracle`.
//
//   node numbers.mjs DIRECTORY A.heapsnapshot [B.heapsnapshot]
//
// DIRECTORY is that of install.js. All lines are about A; with two files, the comparison of B with A follows.
import { createReadStream } from 'node:fs';
import { join, resolve } from 'node:path';

// Node 20 lacks this function.
Promise.withResolvers ??= function () {
  let resolvers;
  const promise = new Promise((resolve, reject) => (resolvers = { resolve, reject }));
  return { promise, ...resolvers };
};
console.warn = () => {};

const [directory, ...files] = process.argv.slice(2);
const { HeapSnapshot, HeapSnapshotLoader } = await import(join(resolve(directory), 'worker.mjs'));

async function load(file) {
  const loader = new HeapSnapshotLoader.HeapSnapshotLoader({ sendEvent() {} });
  for await (const chunk of createReadStream(file, { encoding: 'utf8', highWaterMark: 1 << 20 })) loader.write(chunk);
  loader.close();
  await loader.parsingComplete;
  const channel = new MessageChannel();
  new HeapSnapshot.SecondaryInitManager(channel.port2);
  const snapshot = await loader.buildSnapshot(channel.port1);
  channel.port1.close();
  channel.port2.close();
  return snapshot;
}

const lines = [];
const text = (value) => String(value).replace(/[\t\n\r]/g, ' ');
const put = (...values) => lines.push(values.map(text).join('\t'));

function putClasses(kind, aggregates) {
  for (const key of Object.keys(aggregates).sort()) {
    const { count, distance, self, maxRet, name } = aggregates[key];
    put(kind, key, name, count, distance, self, maxRet);
  }
}

/** Every so many nodes the views of one node. */
const SAMPLE = 97;

function putEdges(kind, node, provider) {
  // The worker compares two edges named __proto__ as "less" in both directions: their order is undefined.
  const items = provider.serializeItemsRange(0, Infinity).items.filter((edge) => edge.name !== '__proto__');
  for (const edge of items.slice(0, 50)) put(kind, node.id(), edge.name, edge.type, edge.node.id, edge.node.distance);
}

function putRetainers(kind, snapshot, node) {
  const provider = snapshot.createRetainingEdgesProvider(node.nodeIndex);
  provider.sortAndRewind({ fieldName1: '!edgeDistance', ascending1: true, fieldName2: '!edgeName', ascending2: true });
  if (!provider.isEmpty()) putEdges(kind, node, provider);
}

function putSnapshot(snapshot) {
  const { total, native, v8heap } = snapshot.getStatistics();
  put('statistics', total, native.total, native.typedArrays, v8heap.total, v8heap.code, v8heap.strings, v8heap.jsArrays, v8heap.system);
  put('maxJsId', snapshot.updateStaticData().maxJSObjectId);
  putClasses('class', snapshot.aggregatesWithFilter({}));
  for (const filterName of [
    'objectsRetainedByContexts', 'objectsRetainedByDetachedDomNodes', 'objectsRetainedByConsole', 'duplicatedStrings',
    'objectsRetainedByEventHandlers', 'sharedNativeContext', 'noNativeContext',
  ]) {
    putClasses(filterName, snapshot.aggregatesWithFilter({ filterName }));
  }
  const sizes = snapshot.getNativeContextSizes();
  for (const context of sizes.nativeContexts) {
    put('nativeContext', context.nodeId, context.attributedSize);
    putClasses(`nativeContext @${context.nodeId}`, snapshot.aggregatesWithFilter({ filterName: `nativeContext_${context.nodeIndex}` }));
  }
  put('nativeContext', 'shared', sizes.sharedSize);
  put('nativeContext', 'none', sizes.noAttributionSize);
  for (const { name, properties } of JSON.parse(snapshot.interfaceDefinitions())) put('interface', name, properties.join(' '));
  const groups = snapshot.getDuplicateStrings().map((group) => [text(group.value), group.count, group.totalSelfSize, group.totalRetainedSize]);
  for (const group of groups.map((group) => group.join('\t')).sort()) lines.push(`duplicate\t${group}`);

  const node = snapshot.createNode(0);
  const dominator = snapshot.createNode(0);
  for (let index = 0, ordinal = 0; index < snapshot.nodes.length; index += snapshot.nodeFieldCount, ordinal++) {
    node.nodeIndex = index;
    dominator.nodeIndex = node.dominatorIndex();
    put('node', node.id(), node.selfSize(), node.retainedSize(), node.distance(), dominator.id(), node.detachedness(), node.className(), node.name());
    if (ordinal % SAMPLE === 0) {
      putEdges('edge', node, snapshot.createEdgesProvider(index));
      putRetainers('retainer', snapshot, node);
    }
  }
  if (snapshot.profile.snapshot.trace_function_count) {
    for (const top of snapshot.allocationTracesTops()) {
      put('allocation', top.name || '(anonymous function)', top.scriptName, top.line, top.column, top.count, top.size, top.liveCount, top.liveSize);
    }
  }
  // The retainers view with a few objects ignored.
  const ignored = [];
  for (let ordinal = 1000; ordinal < snapshot.nodeCount && ignored.length < 40; ordinal += 1009) ignored.push(ordinal * snapshot.nodeFieldCount);
  for (const index of ignored) snapshot.ignoreNodeInRetainersView(index);
  for (let ordinal = 0; ordinal < snapshot.nodeCount; ordinal += SAMPLE) {
    node.nodeIndex = ordinal * snapshot.nodeFieldCount;
    putRetainers('retainerWithoutIgnored', snapshot, node);
  }
  snapshot.unignoreAllNodesInRetainersView();
}

const [before, after] = [await load(files[0]), files[1] && (await load(files[1]))];
putSnapshot(before);
if (after) {
  const diff = after.calculateSnapshotDiff('A', before.aggregatesForDiff(after.interfaceDefinitions()));
  for (const key of Object.keys(diff).sort()) {
    const { name, addedCount, removedCount, addedSize, removedSize, countDelta, sizeDelta } = diff[key];
    put('diff', key, name, addedCount, removedCount, addedSize, removedSize, countDelta, sizeDelta);
  }
  const [minNodeId, maxNodeId] = [before.updateStaticData().maxJSObjectId, after.updateStaticData().maxJSObjectId];
  putClasses('allocatedBetween', after.aggregatesWithFilter({ minNodeId, maxNodeId }));
}
process.stdout.write(lines.join('\n') + '\n');
