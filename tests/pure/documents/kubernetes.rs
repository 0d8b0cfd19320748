//! The manifests: what each object is, and the pods that come of them.

use std::path::Path;

use serde_json::Value;

/// An object of a manifest.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) file: String,
    pub(crate) value: Value,
}

impl Object {
    pub(crate) fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap()
    }

    pub(crate) fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap()
    }

    /// The pod that it makes, if it makes one.
    pub(crate) fn pod(&self) -> Option<&Value> {
        let pod = &self.value["spec"]["podTemplate"]["spec"];
        pod.is_object().then_some(pod)
    }
}

/// The objects of all manifests in the folder, by file and place.
pub(crate) fn objects(folder: &Path) -> Vec<Object> {
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let values: Vec<Value> =
            serde_yaml::from_multiple(&text).unwrap_or_else(|error| panic!("{name} is no YAML: {error}"));
        found.extend(values.into_iter().map(|value| Object {
            file: name.clone(),
            value,
        }));
    }
    found
}

/// Every container of the pod, those that start first included.
pub(crate) fn containers(pod: &Value) -> Vec<&Value> {
    let lists = [&pod["initContainers"], &pod["containers"]];
    lists.into_iter().filter_map(Value::as_array).flatten().collect()
}

/// What the container starts, if the manifest says it.
pub(crate) fn command(container: &Value) -> Vec<String> {
    let lists = [&container["command"], &container["args"]];
    let words = lists.into_iter().filter_map(Value::as_array).flatten();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}
