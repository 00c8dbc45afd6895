// Runs the engine. A trap leaves the instance in an undefined state, so the page then replaces the worker.
import { initSync, check, decide, versions, yaml } from '../dist/playground.js';

const functions = { check, decide, versions, yaml };

self.onmessage = ({ data }) => {
  if (data.module) {
    initSync({ module: data.module });
    self.postMessage({ ready: true });
    return;
  }
  try {
    self.postMessage({ id: data.id, result: functions[data.name](data.input) });
  } catch (error) {
    self.postMessage({ id: data.id, trap: String(error) });
  }
};
